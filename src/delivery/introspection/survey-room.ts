import { ageLimitMs } from "../../broker/kept-since.ts"
import type { StreamSurvey } from "../../broker/survey-streams.ts"

/** The size of a stream, in bytes. Undefined values are unknown. */
export interface StreamRoom {
  readonly name: string
  readonly bytes: number | undefined
  /** Also undefined where it has none. */
  readonly limit: number | undefined
  /** When its oldest message was stored, ms since the epoch; also undefined where it is empty. */
  readonly oldestAt: number | undefined
  /** How long it keeps messages, ms; also undefined where it keeps them without limit. */
  readonly maxAge: number | undefined
}

/** The size of the streams. That of the whole account is `account` of the survey. */
export interface RoomSurvey {
  readonly events: StreamRoom
  readonly history: StreamRoom
  /** Bytes in the queues of all partitions, schedules included; undefined where one is unknown. */
  readonly queues: number | undefined
  readonly backlogs: number | undefined
}

/** Returns a limit in bytes; undefined for none. */
export const bound = (limit: number | undefined): number | undefined =>
  limit === undefined || limit <= 0 ? undefined : limit

/** Returns the size of a stream, as far as it is known. */
export const roomOf = (name: string, stream: StreamSurvey | undefined): StreamRoom => {
  const { config, state } = stream?.info ?? {}
  return {
    name,
    bytes: state?.bytes,
    limit: bound(config?.max_bytes),
    oldestAt: state === undefined || state.messages === 0 ? undefined : Date.parse(state.first_ts),
    maxAge: config === undefined ? undefined : ageLimitMs(config) || undefined
  }
}

/** Returns the total bytes of some streams; undefined where one is unknown. */
export const bytesOf = (
  names: ReadonlyArray<string>,
  streams: ReadonlyMap<string, StreamSurvey>
): number | undefined => {
  let sum = 0
  for (const name of names) {
    const bytes = streams.get(name)?.info?.state.bytes
    if (bytes === undefined) return undefined
    sum += bytes
  }
  return sum
}
