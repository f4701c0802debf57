import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../src/broker/clients.ts"
import { partitionOf } from "../../src/domain/names.ts"
import { pauseEndpoint, resumeEndpoint } from "../../src/endpoints/endpoint-state.ts"
import { isClean, quiet, storedWatermark } from "../kit/consistency.ts"
import { backlogged, endpoint, eventually, publish, worker } from "../kit/engine.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"
import { endLeases, workerProcess } from "../kit/worker-process.ts"

const { scenario } = onServer()

const hook = { tenant: "acme", endpoint: "hook" }

/** Waits until a new owner of the endpoint's partition would read nothing of the present history. */
const historySettled = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const { state } = yield* ask("look at the history", () => jsm.streams.info(names.history))
  yield* eventually(
    storedWatermark(partitionOf("acme", "hook", 2)),
    (floor) => floor >= state.last_seq
  )
})

describe("after two handovers", () => {
  scenario(
    "a delivery that ended behind one in flight is not sent again, though its backlog held it",
    (place) =>
      Effect.gen(function* () {
        let isHeld = true
        const { requests, url } = yield* receiver({
          // Its sender dies before it is answered.
          answer: ({ headers }) =>
            isHeld && headers["webhook-id"] === "hangs" ? undefined : { status: 200 }
        })
        yield* endpoint({ url })
        yield* pauseEndpoint(hook, undefined, "test")
        const ids = ["first", "second", "third", "hangs", "ends"]
        const crash = { step: "outcome-stored", arrival: 4 } as const
        const first = yield* workerProcess(place, { crash })
        for (const id of ids) yield* publish("invoice.paid", "{}", { "Nats-Msg-Id": id })
        yield* eventually(backlogged, (count) => count === ids.length)
        yield* resumeEndpoint(hook, "test")
        yield* first.killed
        yield* endLeases
        yield* pauseEndpoint(hook, undefined, "test")
        const second = yield* worker({ id: "second" })
        yield* historySettled
        yield* second.stop
        isHeld = false
        yield* resumeEndpoint(hook, "test")
        yield* worker({ id: "third" })
        yield* quiet
        const sent = requests.map(({ headers }) => headers["webhook-id"])
        // Two at a time arrive in any order.
        assert.deepStrictEqual(sent.toSorted(), [...ids, "hangs"].sort())
        assert.strictEqual(sent.at(-1), "hangs")
        assert.deepInclude(yield* isClean, { delivered: ids.length, repeated: 0 })
      }),
    { ackWait: 300 }
  )
})
