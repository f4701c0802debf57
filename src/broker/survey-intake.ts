import type { StreamInfo } from "@nats-io/jetstream"
import { Effect } from "effect"
import { Broker } from "./broker.ts"
import { ifFound, streamNotFound } from "./broker-error.ts"
import { readLayout, TopologyError } from "./installed.ts"

/** What INTAKE holds. */
export interface IntakeSurvey {
  /** Events that it still recognises. */
  readonly events: number
  readonly bytes: number
  readonly limitBytes: number | null
  /** Requests in quarantine, by tenant. */
  readonly quarantined: ReadonlyMap<string, number>
}

const lookAtIntake = Effect.gen(function* () {
  const { names, streamInfo } = yield* Broker
  const subjects_filter = names.subjects.quarantine("*")
  return yield* ifFound(
    streamInfo("look at what came in", names.intake, { subjects_filter }),
    streamNotFound
  )
})

const surveyOf = ({ config, state }: StreamInfo): IntakeSurvey => {
  const quarantined = new Map(
    Object.entries(state.subjects ?? {}).map(([subject, count]) => [
      subject.split(".").at(-1) ?? "",
      count
    ])
  )
  const aside = [...quarantined.values()].reduce((sum, count) => sum + count, 0)
  return {
    events: state.messages - aside,
    bytes: state.bytes,
    limitBytes: config.max_bytes > 0 ? config.max_bytes : null,
    quarantined
  }
}

/** Reads what INTAKE holds; undefined where the installation has none. */
export const surveyIntake = Effect.map(lookAtIntake, (info) =>
  info === undefined ? undefined : surveyOf(info)
)

/**
 * Finds the first event that INTAKE still has; undefined if there is none. What came before it is
 * forgotten. What is in quarantine stays for longer, and says nothing of that.
 */
export const firstIncoming = Effect.gen(function* () {
  const { names, readMessage } = yield* Broker
  const found = yield* Effect.forEach(
    names.subjects.incomingTransforms,
    ({ src }) =>
      readMessage("look at what came in first", names.intake, { seq: 1, next_by_subj: src }),
    { concurrency: "unbounded" }
  )
  const [first] = found.filter((message) => message !== null).toSorted((a, b) => a.seq - b.seq)
  return first
})

/** Fails with TopologyError where the installation has no INTAKE. */
export const requireIntake = Effect.gen(function* () {
  if ((yield* lookAtIntake) !== undefined) return
  const { names } = yield* Broker
  return yield* new TopologyError({
    message: `this installation has no ${names.intake}: run \`petrel init\` once more, on nats-server 2.15 or newer`
  })
})

/** Fails with TopologyError where the installation has no INTAKE, or makes no events of what it holds. */
export const requireEventsOfIntake = Effect.gen(function* () {
  yield* requireIntake
  const { isSourced } = yield* readLayout
  if (isSourced) return
  return yield* new TopologyError({
    message: "no event is made of what comes in: run `petrel init` once more"
  })
})
