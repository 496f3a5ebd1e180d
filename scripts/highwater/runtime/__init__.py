"""What every command stands on: its errors and how it ends, what is printed, the project, its package, the lake, Java.

Imports no other room.
"""
