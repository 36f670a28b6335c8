"""What the test runners share: processes, a private engine, scripted peers, the gate, its log."""
