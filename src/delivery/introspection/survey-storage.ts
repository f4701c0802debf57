import type { StreamInfo } from "@nats-io/jetstream"
import { ageLimitMs } from "../../broker/kept-since.ts"
import { waitingSpace } from "../../broker/storage-limits.ts"
import type { StreamSurvey } from "../../broker/survey-streams.ts"
import type { Filled, StreamSpace } from "../../domain/installation.ts"
import type { Names } from "../../domain/names.ts"

/** A stream that keeps what it has for a while. */
export interface KeptStream {
  readonly name: string
  /** How long it keeps messages, ms; undefined also where it keeps them without limit. */
  readonly maxAge: number | undefined
  readonly space: typeof StreamSpace.Type
}

/** The size of the streams. That of the whole account is `account` of the survey. */
export interface SpaceSurvey {
  readonly events: KeptStream
  /** Where tenants have streams of their own, the one that all others publish to. */
  readonly ownEvents?: KeptStream | undefined
  /** The tenants' streams that answered. */
  readonly tenantEvents?: ReadonlyArray<KeptStream> | undefined
  readonly history: KeptStream
  /** The queues of all partitions, schedules included; unknown where one is. */
  readonly queues: typeof Filled.Type
  readonly backlogs: typeof Filled.Type
}

/** Returns a limit in bytes; null for none. */
export const bound = (limit: number | undefined): number | null =>
  limit === undefined || limit <= 0 ? null : limit

/** Returns the size of a stream, as far as it is known. */
const spaceOf = (name: string, info: StreamInfo | undefined): KeptStream => {
  const { config, state } = info ?? {}
  return {
    name,
    maxAge: config === undefined ? undefined : ageLimitMs(config) || undefined,
    space: {
      bytes: state?.bytes ?? null,
      limitBytes: bound(config?.max_bytes),
      oldestAt: state === undefined || state.messages === 0 ? null : Date.parse(state.first_ts)
    }
  }
}

/** Returns the total bytes of some streams; null where one is unknown. */
const bytesOf = (
  names: ReadonlyArray<string>,
  streams: ReadonlyMap<string, StreamSurvey>
): number | null => {
  let sum = 0
  for (const name of names) {
    const bytes = streams.get(name)?.info?.state.bytes
    if (bytes === undefined) return null
    sum += bytes
  }
  return sum
}

/**
 * @param sources the streams that EVENTS copies from.
 * @param others the limits of DEAD and of INTAKE; null for none.
 */
export const surveySpace = (
  names: Names,
  partitions: ReadonlyArray<number>,
  streams: ReadonlyMap<string, StreamSurvey>,
  sources: ReadonlyArray<StreamInfo>,
  others: { readonly deadBytes: number | null; readonly intakeBytes: number | null }
): SpaceSurvey => {
  const events = spaceOf(names.events, streams.get(names.events)?.info)
  const own = streams.get(names.ownEvents)
  const history = spaceOf(names.history, streams.get(names.history)?.info)
  const limits = waitingSpace({
    eventBytes: events.space.limitBytes ?? -1,
    historyBytes: history.space.limitBytes ?? -1,
    deadBytes: others.deadBytes ?? -1,
    intakeBytes: others.intakeBytes ?? -1
  })
  const filled = (of: (partition: number) => string, limit: number | undefined) => ({
    bytes: bytesOf(partitions.map(of), streams),
    limitBytes: limit ?? null
  })
  return {
    ...{ events, history },
    ...(own === undefined ? {} : { ownEvents: spaceOf(names.ownEvents, own.info) }),
    tenantEvents: sources
      .filter(({ config }) => names.tenantOf(config.name) !== undefined)
      .map((info) => spaceOf(info.config.name, info)),
    queues: filled(names.deliveries, limits.queues),
    backlogs: filled(names.backlog, limits.backlogs)
  }
}
