import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { endpoint, history, publish, worker } from "../../../kit/engine.ts"
import { receiver } from "../../../kit/receiver.ts"
import { installations } from "../../command-line.ts"
import { run } from "../../in-process.ts"

const install = installations()

describe("petrel endpoint diagnose", () => {
  it.live("finds why an endpoint fails, and what to do, and sends nothing for it", () => {
    const place = install()
    const diagnose = Effect.map(
      run("endpoint", "diagnose", "acme/hook", ...place.flags),
      (ran) => ({
        code: ran.code,
        text: ran.out.join("\n")
      })
    )
    return place.run(
      Effect.gen(function* () {
        const hook = yield* receiver({ answer: { status: 401, body: "bad signature" } })
        yield* endpoint({ url: hook.url, types: ["invoice.>"] })
        const facts = yield* history
        const unowned = yield* diagnose
        assert.match(unowned.text, /problem +worker +no worker owns partition \d+/)
        assert.match(unowned.text, /warning +events +the event stream holds no event of acme/)
        yield* worker()
        yield* publish("invoice.paid", '{"n":1}')
        yield* facts.count("attempt-failed", 1)
        const before = hook.requests.length
        const { code, text } = yield* diagnose
        assert.strictEqual(code, 0)
        assert.match(
          text,
          /ok +events +1 stored event of acme matches invoice\.>, the latest from /
        )
        assert.match(text, /ok +connection +connected to port \d+ of 127\.0\.0\.1 in /)
        assert.match(text, /problem +failures +the last failed attempt: 1 × 401; .*: bad signature/)
        assert.match(text, /\n {2}1\. The receiver does not accept the signature/)
        assert.strictEqual(hook.requests.length, before)
      })
    )
  })

  it.live("says in one sentence that there is no such endpoint", () => {
    const place = install()
    return place.run(
      Effect.gen(function* () {
        const { code, err } = yield* run("endpoint", "diagnose", "acme/none", ...place.flags)
        assert.strictEqual(code, 1)
        assert.match(err.join("\n"), /acme\/none/)
      })
    )
  })
})
