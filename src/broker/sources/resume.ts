import type { StreamConfig, StreamSource } from "@nats-io/jetstream"
import { Effect } from "effect"
import type { Origin } from "../../domain/origin.ts"
import { readOrigin } from "../../domain/origin.ts"
import { natsClients } from "../clients.ts"
import { seeStream } from "../scan.ts"
import { restartOf } from "./links.ts"

/** Messages from the end of a stream that are read first, then eight times as many. */
const firstWindow = 10_000

/** Returns the last message that a stream holds of each of these sources. Reads headers only. */
const lastOrigins = Effect.fnUntraced(function* (target: string, sources: ReadonlySet<string>) {
  const { streamInfo } = yield* natsClients
  const { state } = yield* streamInfo(`look at ${target}`, target)
  const found = new Map<string, Origin>()
  for (let window = firstWindow; ; window *= 8) {
    const fromSeq = Math.max(1, state.first_seq, state.last_seq - window + 1)
    yield* seeStream({ stream: target, subjects: [">"], fromSeq, headersOnly: true }, (message) => {
      const origin = readOrigin(message.headers?.get("Nats-Stream-Source"))
      if (origin !== undefined && sources.has(origin.stream)) found.set(origin.stream, origin)
      return false
    })
    if (found.size === sources.size || fromSeq <= state.first_seq) return found
  }
})

/** Returns a source that starts behind what was copied of it last. */
const startedBehind = (source: StreamSource, last: Origin | undefined): StreamSource => {
  // A restart that has copied nothing yet starts where it says.
  if (last === undefined || last.restart?.number !== restartOf(source)?.number) return source
  const { opt_start_time: _, ...rest } = source
  return { ...rest, opt_start_seq: last.seq + 1 }
}

/**
 * Lets a stream that was restored without its sources copy from them, each from behind what the
 * stream holds of it. A stream that is restored with its sources copies all of them again:
 * nats-server 2.15 does not look for the last copies then. Needs the right to change the stream.
 */
export const resumeSources = Effect.fnUntraced(function* (
  target: string,
  sources: NonNullable<StreamConfig["sources"]>
) {
  const { ask, jsm, streamInfo } = yield* natsClients
  const last = yield* lastOrigins(target, new Set(sources.map(({ name }) => name)))
  const { config } = yield* streamInfo(`look at ${target}`, target)
  const resumed = sources.map((source) => startedBehind(source, last.get(source.name)))
  yield* ask(`let ${target} copy from its sources`, () =>
    jsm.streams.update(target, { ...config, sources: resumed })
  )
})
