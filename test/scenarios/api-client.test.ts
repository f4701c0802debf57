import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { runJobs } from "../../src/operations/jobs/job-runner.ts"
import { startConsole } from "../kit/console.ts"
import { nth, worker } from "../kit/engine.ts"
import { makeClient } from "../kit/openapi-client.ts"
import { receiver } from "../kit/receiver.ts"
import { onServer } from "../kit/scenario.ts"

const { longScenario } = onServer()

/** What the client's module gives. It is checked by a TypeScript of its own. */
interface Client {
  readonly useClient: (
    url: string,
    token: string,
    receiver: string,
    mend: () => void
  ) => Promise<{
    readonly changed: ReadonlyArray<string>
    readonly staleStatus: number
    readonly batch: object
    readonly delivery: { readonly rounds: ReadonlyArray<{ readonly state: string }> }
    readonly event: object
    readonly dead: ReadonlyArray<object>
    readonly job: object
  }>
}

describe("a client that is made from the OpenAPI document", () => {
  longScenario(
    "publishes, manages endpoints, looks what became of events and sends them again",
    () =>
      Effect.gen(function* () {
        const path = yield* makeClient
        const { useClient } = yield* Effect.promise(() => import(path) as Promise<Client>)
        const { answer, url } = yield* receiver({ answer: { status: 503 } })
        yield* worker()
        yield* runJobs("test")
        const { token: make, url: api } = yield* startConsole()
        const token = yield* make()
        const found = yield* Effect.promise(() =>
          useClient(api, token, url, () => answer({ status: 200 }))
        )
        assert.deepStrictEqual(found.changed, ["maxInFlight", "contact"])
        assert.strictEqual(found.staleStatus, 412)
        assert.deepInclude(found.batch, { stored: 1, duplicates: 0, failed: 1 })
        assert.deepInclude(nth(found.dead, 0), { event: "acme.i1", reason: "attempts" })
        assert.deepInclude(found.job, { kind: "redelivery", state: "done" })
        assert.deepStrictEqual(
          found.delivery.rounds.map(({ state }) => state),
          ["dead-lettered", "delivered"]
        )
        assert.deepInclude(found.event, { id: "acme.i1", type: "invoice.paid", bytes: 14 })
      })
  )
})
