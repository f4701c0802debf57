import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  endpoint,
  eventually,
  history,
  lateRetry,
  nth,
  publish,
  worker
} from "../../../kit/engine.ts"
import { receiver } from "../../../kit/receiver.ts"
import { installations, parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"

const install = installations()

describe("petrel endpoint recover", () => {
  it.live("sends again what failed since a time, each once, and says what it would do", () => {
    const place = install()
    const recover = (...args: ReadonlyArray<string>) =>
      Effect.map(
        run("endpoint", "recover", "acme/hook", ...place.flags, ...args),
        ({ code, err, out }) => ({ code, out, said: [...out, ...err].join("\n") })
      )
    return place.run(
      Effect.scoped(
        Effect.gen(function* () {
          const to = yield* receiver({
            answer: ({ body }) => ({ status: Number(body.toString()) })
          })
          yield* endpoint({ url: to.url, retry: lateRetry })
          const facts = yield* history
          yield* worker()
          for (const status of ["400", "400", "500"]) yield* publish("a", status)
          yield* facts.count("attempt-failed", 3)
          yield* facts.count("dead-lettered", 2)
          to.answer({ status: 200 })
          for (const [args, pattern] of [
            [[], /^petrel: --since is missing: /],
            [["--since", "soon"], /--since "soon" must be a time/]
          ] as const) {
            const { code, said } = yield* recover(...args)
            assert.strictEqual(code, 2, said)
            assert.match(said, pattern)
          }
          const since = ["--since", "1 hour"]
          const planned = yield* eventually(recover(...since, "--dry-run"), ({ said }) =>
            said.includes("1 delivery goes on now")
          )
          assert.match(planned.said, /^acme\/hook: .*; would send 2 dead letters again/)
          assert.lengthOf(facts.of("redelivered"), 0)
          const sent = yield* recover(...since)
          assert.match(sent.said, /acme\/hook: 1 delivery goes on now; 2 dead letters sent again/)
          yield* facts.count("delivered", 3)
          const again = yield* recover(...since, "--json")
          const { out } = again
          const left = { redelivered: 0, before: 2, superseded: 0 }
          assert.deepInclude(parse(nth(out, out.length - 1)), left)
          assert.lengthOf(facts.of("redelivered"), 2)

          to.answer({ status: 400 })
          for (const [id, dead] of [
            ["one", 5],
            ["two", 8]
          ] as const) {
            yield* run("replay", "--to", "acme/hook", "--id", id, ...place.flags)
            yield* facts.count("dead-lettered", dead)
          }
          to.answer({ status: 200 })
          const newest = yield* recover(...since)
          assert.match(newest.said, /; 3 dead letters sent again: /)
          assert.include(
            newest.said,
            "3 left alone: a newer dead letter of the same delivery is sent instead of each"
          )
          yield* facts.count("delivered", 6)

          yield* run("endpoint", "pause", "acme/hook", ...place.flags)
          yield* publish("a", "200")
          for (const args of [since, [...since, "--dry-run"]])
            assert.match(
              (yield* recover(...args)).said,
              /^acme\/hook: no waiting delivery is tried \(acme\/hook is paused: resume it/
            )
        })
      )
    )
  })
})
