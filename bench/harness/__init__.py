"""What the programs of bench/ share: starting peers, pairing runs, tables and JSON lines."""
