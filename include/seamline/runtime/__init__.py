"""What a process of ours needs of its machine: how it ends, other processes, sockets, Java."""
