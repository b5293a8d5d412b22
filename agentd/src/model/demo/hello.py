import sys


def greeting(name):
    return f"Hello, {name}!"


def main():
    # Greets everyone named on the command line.
    for name in sys.argv[2:]:
        print(greeting(name))


if __name__ == "__main__":
    main()
