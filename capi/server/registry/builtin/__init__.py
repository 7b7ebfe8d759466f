"""The built-in kinds: `table.kinds()` joins what they look like (catalog), do (rules) and print (tables).

kinds.json is generated, see tools/generate_builtin.py.
"""
