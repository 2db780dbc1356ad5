#!/usr/bin/env python3
"""make_bucket.py BUCKET: makes a bucket in the store that the environment names, by a signature of this file's own. (mox makes none.)"""
import datetime
import hashlib
import hmac
import os
import sys
import time
import urllib.error
import urllib.request


def put(bucket):
    endpoint, region = os.environ["S3_ENDPOINT"], os.environ["S3_REGION"]
    host = endpoint.split("://")[1]
    now = datetime.datetime.now(datetime.timezone.utc)
    stamp, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    empty = hashlib.sha256(b"").hexdigest()
    names = "host;x-amz-content-sha256;x-amz-date"
    canonical = "PUT\n/%s\n\nhost:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n\n%s\n%s" % (bucket, host, empty, stamp, names, empty)
    scope = "%s/%s/s3/aws4_request" % (day, region)
    text = "AWS4-HMAC-SHA256\n%s\n%s\n%s" % (stamp, scope, hashlib.sha256(canonical.encode()).hexdigest())
    key = ("AWS4" + os.environ["SECRET_ACCESS_KEY"]).encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    request = urllib.request.Request(endpoint + "/" + bucket, method="PUT", headers={
        "x-amz-date": stamp, "x-amz-content-sha256": empty,
        "Authorization": "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s" % (
            os.environ["ACCESS_KEY_ID"], scope, names, signature)})
    urllib.request.urlopen(request, timeout=20).read()


for attempt in range(20):  # a server that has just been started
    try:
        put(sys.argv[1])
        sys.exit(0)
    except urllib.error.HTTPError as error:
        last = "%s %s" % (error.code, error.read()[:300])
    except OSError as error:
        last = str(error)
    time.sleep(0.5)
sys.exit("the bucket cannot be made: " + last)
