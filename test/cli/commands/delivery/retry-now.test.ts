import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { endpoint, eventually, history, lateRetry, publish, worker } from "../../../kit/engine.ts"
import { receiver } from "../../../kit/receiver.ts"
import { installations, parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"

const install = installations()

describe("petrel endpoint retry-now", () => {
  it.live("tries what waits by filter, and says what is wrong with one", () => {
    const place = install()
    const retry = (...args: ReadonlyArray<string>) =>
      run("endpoint", "retry-now", "acme/hook", "--json", ...args, ...place.flags)
    return place.run(
      Effect.gen(function* () {
        const to = yield* receiver({ answer: ({ body }) => ({ status: Number(body.toString()) }) })
        yield* endpoint({ url: to.url, retry: lateRetry })
        const facts = yield* history
        yield* worker()
        for (const [type, status] of [
          ["invoice.paid", "500"],
          ["invoice.paid", "503"],
          ["user.created", "503"]
        ] as const)
          yield* publish(type, status)
        yield* facts.count("attempt-failed", 3)
        for (const [args, pattern] of [
          [["--status", "6xx"], /--status "6xx" must be an HTTP status/],
          [["--error", "slow"], /--error "slow" must be/],
          [["--type", "a..b"], /--type "a\.\.b"/],
          [["--since", "1m", "--until", "1h"], /--since is later than --until/]
        ] as const) {
          const { code, err } = yield* retry(...args)
          assert.strictEqual(code, 2, err.join("\n"))
          assert.match(err.join("\n"), pattern)
        }
        const none = yield* retry("--error", "timeout")
        assert.deepInclude(parse(none.out.join("")), { moved: 0, inFlight: 0 })
        to.answer({ status: 200 })
        const narrow = ["--status", "5xx", "--type", "user.>", "--since", "1h"]
        yield* eventually(retry(...narrow), ({ out }) => out.join("").includes('"moved":1'))
        yield* facts.count("delivered", 1)
        assert.deepStrictEqual(
          facts.of("delivered").map(({ type }) => type),
          ["user.created"]
        )
      }).pipe(Effect.scoped)
    )
  })
})
