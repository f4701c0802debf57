import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Facts } from "../../../../src/history/facts.ts"
import { nth } from "../../../kit/engine.ts"
import { installations, parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"

const place = installations()

describe("petrel history export", () => {
  it.live("writes facts with all that was stored, or as a table that spreadsheets can read", () => {
    const { flags, run: inside } = place()
    return inside(
      Effect.gen(function* () {
        const facts = yield* Facts
        const at = Date.UTC(2026, 2, 4, 10, 30)
        const about = { v: 1, at, tenant: "acme", endpoint: "hook", eventSeq: 7 } as const
        const error = { class: "timeout", message: 'took "too" long, again' } as const
        yield* facts.append({ ...about, kind: "attempt-failed", attempt: 1, error }, "1")
        yield* facts.append({ ...about, kind: "dead-lettered", reason: "=1+1" }, "2")
        yield* facts.append({ ...about, kind: "delivered", tenant: "other" }, "3")
        const formulas = ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "'=1"]
        for (const [index, reason] of formulas.entries())
          yield* facts.append({ ...about, kind: "discarded", tenant: "calc", reason }, `c${index}`)
        const [ndjson, csv, calc] = yield* Effect.all(
          [
            run("history", "export", ...flags),
            run("history", "export", "--format", "csv", "--tenant", "acme", ...flags),
            run("history", "export", "--format", "csv", "--tenant", "calc", ...flags)
          ],
          { concurrency: 2 }
        )
        assert.deepStrictEqual([ndjson.code, csv.code], [0, 0], csv.err.join("\n"))
        assert.lengthOf(ndjson.out, 3 + formulas.length)
        assert.deepStrictEqual(parse(nth(ndjson.out, 0)), {
          ...{ seq: 1, ...about, at: "2026-03-04T10:30:00.000Z" },
          ...{ kind: "attempt-failed", attempt: 1, error }
        })
        assert.lengthOf(csv.out, 3)
        assert.match(nth(csv.out, 0), /^seq,at,kind,tenant,endpoint,/)
        assert.match(
          nth(csv.out, 1),
          /^1,2026-03-04T10:30:00\.000Z,attempt-failed,acme,hook,.*,timeout,"took ""too"" long, again",/
        )
        assert.match(nth(csv.out, 2), /,'=1\+1,/)
        assert.deepStrictEqual(csv.err, ["2 facts exported"])
        assert.deepStrictEqual(
          calc.out.slice(1).map((line) => line.split(",").at(-5)),
          ["'=1+1", "'+1", "'-1", "'@SUM(1)", "'\t=1", `"'\\u000d=1"`, "'=1"]
        )
      })
    )
  })
})
