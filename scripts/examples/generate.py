"""Write the files under examples/: what each producer delivered, and what its source held at the end.

Run from the project's folder: `python scripts/examples/generate.py`. The same files come out every time. The sources
are played by dicts, so the exports do not depend on anything that highwater does.
"""

import arcion
import datastream
import debezium
import dms
import experiment
import tungsten


def main() -> None:
    """Write everything."""
    for producer in (experiment, datastream, tungsten, arcion, debezium, dms):
        producer.deliver_all()


if __name__ == "__main__":
    main()
