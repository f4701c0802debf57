import { assert, describe, it } from "@effect/vitest"
import { HistogramCells } from "../../src/metrics/cells.ts"
import type { Family } from "../../src/metrics/family.ts"
import { counter, gauge } from "../../src/metrics/family.ts"
import { prometheusName, prometheusText } from "../../src/metrics/prometheus-text.ts"

describe("prometheusText", () => {
  it("writes counters and gauges with unit, suffix and escaped labels", () => {
    const families: ReadonlyArray<Family> = [
      counter("a.time", "Of a\\b.\nTwo.", 1.5, "s"),
      gauge("a.size", "Size.", Number.POSITIVE_INFINITY, "By"),
      {
        ...{ name: "b", help: "B.", type: "gauge" },
        samples: [{ labels: { x: 'a"b\\c\nd', y: "2" }, value: 3 }]
      }
    ]
    assert.strictEqual(
      prometheusText(families),
      [
        "# HELP a_time_seconds_total Of a\\\\b.\\nTwo.",
        "# TYPE a_time_seconds_total counter",
        "a_time_seconds_total 1.5",
        "# HELP a_size_bytes Size.",
        "# TYPE a_size_bytes gauge",
        "a_size_bytes +Inf",
        "# HELP b B.",
        "# TYPE b gauge",
        'b{x="a\\"b\\\\c\\nd",y="2"} 3',
        ""
      ].join("\n")
    )
  })

  it("writes a histogram with counts that add up, an upper bound in its bucket", () => {
    const cells = new HistogramCells({ end: "x" }, [10, 2_500], 0.001)
    for (const value of [1, 10, 11, 2_501]) cells.observe(value)
    const family: Family = {
      ...{ name: "h", help: "H.", unit: "s", type: "histogram" },
      samples: cells.samples(false)
    }
    const expected = [
      'h_seconds_bucket{end="x",le="0.01"} 2',
      'h_seconds_bucket{end="x",le="2.5"} 3',
      'h_seconds_bucket{end="x",le="+Inf"} 4',
      'h_seconds_sum{end="x"} 2.523',
      'h_seconds_count{end="x"} 4'
    ]
    const lines = () => prometheusText([family]).trim().split("\n").slice(2)
    assert.deepStrictEqual(lines(), expected)
    // Once more, from what is kept of the labels.
    assert.deepStrictEqual(lines(), expected)
  })

  it("does not repeat a unit that the name has", () => {
    assert.strictEqual(prometheusName({ name: "a.seconds", type: "gauge", unit: "s" }), "a_seconds")
  })
})
