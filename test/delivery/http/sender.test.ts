import { assert, describe, it } from "@effect/vitest"
import { startSending } from "../../../src/delivery/http/sender.ts"
import type { HttpTransport } from "../../../src/delivery/http/transport.ts"
import type { AttemptOutcome } from "../../../src/domain/attempt-outcome.ts"
import { clock, timers } from "../../../src/time/timers.ts"
import { clockEvents, withVirtualTime } from "../../kit/moved-time.ts"
import { deliveryOf, live } from "../made-deliveries.ts"

describe("an attempt", () => {
  for (const [what, happens] of clockEvents)
    it(`ended when it began plus its duration, where ${what} meanwhile`, () =>
      withVirtualTime((time) => {
        let answer: (result: AttemptOutcome["result"]) => void = () =>
          assert.fail("it was not started")
        const transport = {
          start: (_: unknown, done: typeof answer) => {
            answer = done
            return { cancel: () => undefined }
          }
        } as unknown as HttpTransport
        const outcomes: Array<AttemptOutcome> = []
        const began = timers.wallMs()
        startSending(
          { transport, clock, answers: () => "none" },
          { body: new Uint8Array(2), delivery: deliveryOf() },
          live,
          1,
          (outcome) => outcomes.push(outcome)
        )
        time.runs(250)
        happens(time)
        answer({ status: 503, durationMs: 250.4 })
        assert.deepStrictEqual(
          outcomes.map(({ at }) => at - began),
          [250]
        )
      }))
})
