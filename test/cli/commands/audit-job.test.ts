import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { auditInThread, auditsInThreads } from "../../../src/cli/commands/console/audit-job.ts"
import { auditHere } from "../../../src/operations/jobs/audit-work.ts"
import { runJobs } from "../../../src/operations/jobs/job-runner.ts"
import { alteredBroker } from "../../kit/altered-broker.ts"
import { startConsole } from "../../kit/console.ts"
import type { Installation } from "../../kit/engine.ts"
import { endpoint, eventually, history, publish, worker } from "../../kit/engine.ts"
import { receiver } from "../../kit/receiver.ts"
import { onServer } from "../../kit/scenario.ts"

const { scenario } = onServer()

/** Delivers some events. */
const delivered = Effect.fnUntraced(function* (events: number) {
  const { url } = yield* receiver()
  yield* endpoint({ url })
  const facts = yield* history
  yield* worker()
  for (let n = 0; n < events; n++) yield* publish("a", `${n}`)
  yield* facts.count("delivered", events)
})

const untold = () => undefined

/** What can be sent to a thread of how a story is connected. */
const brokerOf = ({ eventRoot, prefix, url }: Installation) => ({ eventRoot, prefix, url })

describe.concurrent("the audit of a job", () => {
  scenario("finds in its thread what it finds elsewhere", (place) =>
    Effect.gen(function* () {
      yield* delivered(5)
      const here = yield* auditHere({}, untold)
      const there = yield* auditInThread(brokerOf(place))({}, untold)
      assert.deepStrictEqual({ ...there.report, ms: 0 }, { ...here.report, ms: 0 })
      assert.deepInclude(there.report.deliveries, { delivered: 5 })
      assert.deepStrictEqual(there.problems, [])
    })
  )

  scenario("reads nothing over the connection of its console", (place) =>
    Effect.gen(function* () {
      yield* delivered(5)
      const { ask, token: make } = yield* startConsole()
      const token = yield* make({ tenant: "*" })
      const reads: Array<string> = []
      const watched = yield* alteredBroker(({ readRun, see }) => ({
        see: (range, ...more) => {
          reads.push(range.stream)
          return see(range, ...more)
        },
        readRun: (range, ...more) => {
          reads.push(range.stream)
          return readRun(range, ...more)
        }
      }))
      yield* runJobs("one").pipe(
        auditsInThreads(brokerOf(place)),
        Effect.provideService(Broker, watched)
      )
      const asked = yield* ask("/v1/audits", { method: "POST", token })
      const { json } = yield* eventually(
        ask(asked.headers.get("location") ?? "", { token }),
        ({ json }) => json.state === "done"
      )
      assert.deepInclude(json.result, { verdict: "clean", listed: [] })
      assert.deepStrictEqual(reads, [])
    })
  )

  scenario(
    "may be tried again where the broker is away, and not where it makes no sense",
    (place) =>
      Effect.gen(function* () {
        const fails = (audit: ReturnType<typeof auditHere>) => Effect.flip(audit)
        const away = auditInThread({ ...brokerOf(place), url: "nats://127.0.0.1:9" })
        const silent = yield* fails(away({}, untold))
        assert.isTrue(silent.mayPass)
        assert.include(silent.message, "127.0.0.1:9")
        const unknown = yield* fails(auditInThread(brokerOf(place))({ tenant: "nobody" }, untold))
        assert.isFalse(unknown.mayPass)
        assert.include(unknown.message, "nobody is unknown")
      })
  )

  scenario("ends alone where it needs more memory than it may have", (place) =>
    Effect.gen(function* () {
      const { mayPass, message } = yield* Effect.flip(auditInThread(brokerOf(place), 8)({}, untold))
      assert.isFalse(mayPass)
      assert.include(message, "audit a shorter range")
    })
  )
})
