"""What it costs an INSERT that a second writer by the same number is refused: CPU seconds of Java, wall seconds.

The ways are interleaved in a random order, in one warm process; see docs/decisions/0046-several-writers.md.
"""

import os
import random
import tempfile
import time

ROUNDS, WARM = 25, 10
ROWS = (
    "select k, log_batch, v, feed, x, y from ("
    "select cast(id as int) as k, {n}L as log_batch, uuid() as v, 'f' as feed, "
    "row_number() over (partition by id % 10 order by id) as x, current_timestamp() as y from range(1000))"
)
WAYS = {
    "plain": f"insert into lake.plain {ROWS}",
    "reads_itself": f"insert into lake.reads_itself {ROWS} where if(exists (select 1 from lake.reads_itself "
    "where log_batch >= {n}), raise_error('it is there'), true)",
    "replaces": "insert into lake.replaces replace where log_batch >= {n} " + ROWS,
    "transaction": "insert into lake.transaction with ('txnAppId' = 'bench', 'txnVersion' = '{n}') " + ROWS,
}


def main():
    """Print for each way what an INSERT of 1,000 rows costs."""
    with tempfile.TemporaryDirectory(prefix="highwater-inserts-") as folder:
        os.environ["HIGHWATER_LAKE"] = folder
        from highwater.spark.spark import session

        spark = session(spark__master="local[2]")
        java = spark._jvm.java.lang.ProcessHandle.current()
        spent = {way: [0.0, 0.0] for way in WAYS}
        for way in WAYS:
            spark.sql(
                f"create table lake.{way} (k int, log_batch bigint, v string, feed string, x int, y timestamp) "
                "using delta tblproperties ('delta.dataSkippingStatsColumns' = 'log_batch,feed')"
            )
        for number in range(1, ROUNDS + 1):
            for way in random.sample([*WAYS], len(WAYS)):
                began = java.info().totalCpuDuration().get().toMillis() / 1000, time.monotonic()
                spark.sql(WAYS[way].format(n=number))
                if number > WARM:
                    spent[way][0] += java.info().totalCpuDuration().get().toMillis() / 1000 - began[0]
                    spent[way][1] += time.monotonic() - began[1]
        for way, (cpu, wall) in spent.items():
            rounds = ROUNDS - WARM
            print(f"{way:<13} CPU {cpu / rounds:.2f} s, wall {wall / rounds:.2f} s")
        spark.stop()


if __name__ == "__main__":
    main()
