"""The commands of the command line, by subject: arguments and help here, work in the folders below."""
