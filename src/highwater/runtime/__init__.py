"""What every command stands on: errors and how it ends, what is printed, the project, its package, the lake, Java."""
