import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import type { FailpointName } from "../../src/broker/failpoint.ts"
import type { TopologyOptions } from "../../src/broker/topology.ts"
import type { RetryPolicyJson } from "../../src/domain/retry-policy.ts"
import { consistentRounds, isClean, noRecords, quiet } from "../kit/consistency.ts"
import { endpoint, nth, publish, quickRetry, worker } from "../kit/engine.ts"
import { isLong } from "../kit/long.ts"
import type { Received, Script } from "../kit/receiver.ts"
import { receiver } from "../kit/receiver.ts"
import { byAttempt, onServer, refusingRepeats } from "../kit/scenario.ts"
import { crashAt } from "../kit/worker-process.ts"

vi.setConfig({ maxConcurrency: 8, testTimeout: 60_000 })

const { longScenario, scenario } = onServer()

/** A way that deliveries go, and the steps on it: which arrival there is the crash. */
interface Path {
  readonly name: string
  readonly answer: Script
  readonly retry?: Partial<RetryPolicyJson>
  /** Waiting by NAK beyond which schedules are used. */
  readonly maxWaiting?: number
  /** Attempts in the order in which the receiver sees them, when nothing crashes. */
  readonly attempts: ReadonlyArray<number>
  /** `delivered`, or the reason of the dead letter. */
  readonly end: string
  readonly steps: ReadonlyArray<readonly [step: FailpointName, arrival: number]>
  /** The same where the first attempt was made from the event: it waits for the second as it comes to the queue. */
  readonly stepsFromEvent?: Path["steps"]
}

const paths: ReadonlyArray<Path> = [
  {
    name: "that works first time",
    answer: {},
    attempts: [1],
    end: "delivered",
    steps: [
      ["answered", 1],
      ["outcome-stored", 1]
    ]
  },
  {
    name: "that works after a NAK",
    answer: byAttempt(503, 200),
    attempts: [1, 2],
    end: "delivered",
    steps: [
      ["answered", 1],
      ["decided", 1],
      ["outcome-stored", 1],
      ["answered", 2],
      ["outcome-stored", 2]
    ],
    stepsFromEvent: [
      ["answered", 1],
      ["outcome-stored", 1],
      ["delivery-stored", 1],
      ["event-routed", 1],
      ["answered", 2],
      ["outcome-stored", 2]
    ]
  },
  {
    name: "that works after two schedules",
    answer: byAttempt(503, 503, 200),
    maxWaiting: 0,
    attempts: [1, 2, 3],
    end: "delivered",
    steps: [
      ["answered", 1],
      ["decided", 1],
      ["outcome-stored", 1],
      ["moved", 1],
      ["answered", 2],
      ["moved", 2],
      ["answered", 3],
      ["outcome-stored", 3]
    ],
    stepsFromEvent: [
      ["outcome-stored", 1],
      ["answered", 2],
      ["moved", 1],
      ["answered", 3]
    ]
  },
  {
    name: "that waits for long after its first attempt",
    answer: byAttempt(503, 200),
    retry: { backoff: { kind: "fixed", delay: "3 seconds" } },
    attempts: [1, 2],
    end: "delivered",
    steps: [["decided", 1]]
  },
  {
    name: "that waits for long, and as a schedule, after its first attempt",
    answer: byAttempt(503, 200),
    retry: { backoff: { kind: "fixed", delay: "3 seconds" } },
    maxWaiting: 0,
    attempts: [1, 2],
    end: "delivered",
    steps: [
      ["decided", 1],
      ["moved", 1],
      ["outcome-stored", 2]
    ]
  },
  {
    name: "that is refused for good",
    answer: { status: 400 },
    attempts: [1],
    end: "permanent",
    steps: [
      ["answered", 1],
      ["decided", 1],
      ["outcome-stored", 1],
      ["dead-stored", 1],
      ["end-stored", 1]
    ]
  },
  {
    name: "that uses up its attempts",
    answer: { status: 503 },
    retry: { maxAttempts: 2 },
    attempts: [1, 2],
    end: "attempts",
    steps: [
      ["answered", 2],
      ["decided", 2],
      ["outcome-stored", 2],
      ["dead-stored", 1],
      ["end-stored", 1]
    ],
    stepsFromEvent: [
      ["answered", 2],
      ["decided", 1],
      ["outcome-stored", 2],
      ["dead-stored", 1]
    ]
  },
  {
    name: "whose next attempt would come after its deadline",
    answer: { status: 503 },
    retry: { backoff: { kind: "fixed", delay: "1 hour" } },
    attempts: [1],
    end: "deadline",
    steps: [
      ["decided", 1],
      ["dead-stored", 1],
      ["end-stored", 1]
    ]
  },
  {
    name: "whose deadline passed before anybody attempted it",
    answer: {},
    retry: { window: "1 millis" },
    attempts: [],
    end: "deadline",
    steps: [
      ["decided", 1],
      ["dead-stored", 1],
      ["end-stored", 1]
    ]
  }
]

const attemptsSeen = (requests: ReadonlyArray<Received>) =>
  requests.map(({ headers }) => Number(headers["petrel-attempt"]))

/** Only a request whose answer nobody recorded is sent again. */
const withRepeat = (attempts: ReadonlyArray<number>, step: FailpointName, arrival: number) =>
  step === "answered"
    ? attempts.flatMap((attempt) => (attempt === arrival ? [attempt, attempt] : [attempt]))
    : attempts

/** Another worker takes over, brings everything to its end, and stops. */
const takeOver = (maxWaiting?: number) =>
  Effect.gen(function* () {
    const second = yield* worker({ id: "second", maxWaiting })
    yield* quiet
    yield* second.stop
    yield* noRecords
  })

/** How its first attempt comes about: out of its queue, or while its event is routed. */
const ways = ["from the queue", "from its event"] as const

const stepsOf = (path: Path, way: (typeof ways)[number]) =>
  way === "from its event" ? (path.stepsFromEvent ?? path.steps) : path.steps

/** Steps that were told of, by the way and the series: `npm test` tells of each once. */
const told = new Set<string>()

const isFirstOf = (series: string, step: FailpointName): boolean => {
  const name = `${series} ${step}`
  if (told.has(name)) return false
  told.add(name)
  return true
}

const crashes = (
  path: Path,
  way: (typeof ways)[number],
  steps = stepsOf(path, way),
  topology: Partial<TopologyOptions> = {},
  refusesRepeats = false
) => {
  const series = `${way}, ${JSON.stringify(topology)}, ${refusesRepeats}`
  for (const [step, arrival] of steps) {
    const tell = isLong || isFirstOf(series, step) ? scenario : longScenario
    const which = steps.some(([other, n]) => other === step && n !== arrival) ? ` (${arrival})` : ""
    tell(
      `${step}${which}`,
      (place) =>
        Effect.gen(function* () {
          const { answer, attempts, maxWaiting, retry } = path
          const isRefused = refusesRepeats && step === "answered" && arrival === attempts.length
          const end = isRefused ? "permanent" : path.end
          const { requests, url } = yield* receiver({
            answer: refusesRepeats ? refusingRepeats(answer) : answer
          })
          yield* endpoint({ url, retry: quickRetry(retry) })
          const event = publish("invoice.paid", "{}", { "Nats-Msg-Id": "acme-1" })
          const options = maxWaiting === undefined ? {} : { maxWaiting }
          if (way === "from its event") yield* crashAt(place, step, arrival, options, event)
          else {
            yield* event
            yield* crashAt(place, step, arrival, options)
          }
          yield* takeOver(maxWaiting)
          const [account] = yield* consistentRounds
          const fact = nth(account?.ends ?? [], 0)
          assert.strictEqual(fact.kind === "delivered" ? fact.kind : fact.reason, end)
          assert.deepStrictEqual(attemptsSeen(requests), withRepeat(attempts, step, arrival))
          for (const { headers } of requests) assert.strictEqual(headers["webhook-id"], "acme-1")
          const { deadLettered, delivered } = yield* isClean
          assert.deepStrictEqual([delivered, deadLettered], end === "delivered" ? [1, 0] : [0, 1])
        }),
      topology
    )
  }
}

for (const way of ways)
  for (const path of paths)
    describe.concurrent(`a delivery ${path.name}, ${way}, ends once, whose worker dies at`, () =>
      crashes(path, way))

/** After which the receiver has taken it: the last attempt was answered, or is told of. */
const taken = new Set<FailpointName>(["answered", "outcome-stored"])

for (const way of ways)
  for (const path of paths.filter(({ end }) => end === "delivered")) {
    const steps = stepsOf(path, way).filter(
      ([step, arrival]) => taken.has(step) && arrival === path.attempts.length
    )
    if (steps.length > 0)
      describe.concurrent(`a delivery ${path.name}, ${way}, ends once, though its receiver refuses what it has taken, whose worker dies at`, () =>
        crashes(path, way, steps, {}, true))
  }

const forgets = new Set([
  "that works first time",
  "that works after two schedules",
  "that is refused for good"
])

/** Steps after which the same message may be stored once more, and must not be. */
const moves = new Set<FailpointName>(["outcome-stored", "dead-stored", "moved"])

for (const way of ways)
  for (const path of paths.filter(({ name }) => forgets.has(name)))
    describe.concurrent(`a delivery ${path.name}, ${way}, ends once, though the broker forgets what it had when its worker died at`, () =>
      crashes(
        path,
        way,
        stepsOf(path, way).filter(([step, arrival]) => moves.has(step) && arrival === 1),
        // Over long before the message is redelivered, after its ack_wait.
        { moveDedupe: 200 }
      ))
