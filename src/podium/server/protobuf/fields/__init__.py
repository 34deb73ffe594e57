"""What stands at which number in the messages of each API group; `podium.server.protobuf.messages` reads it."""
