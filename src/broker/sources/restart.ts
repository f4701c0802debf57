import type { StreamConfig, StreamSource } from "@nats-io/jetstream"
import { Effect } from "effect"
import type { Names } from "../../domain/names.ts"
import { type Origin, readOrigin } from "../../domain/origin.ts"
import { natsClients } from "../clients.ts"
import { seeStream } from "../scan.ts"
import { type Divergence, restartFor } from "./divergence.ts"
import { filtersOf, restartOf } from "./links.ts"
import { compareNew, readRecord, writeRecord } from "./record.ts"

/** Returns the transforms of a source without the mark of a restart. */
const transformsOf = (source: StreamSource, subjects: ReadonlyArray<string>) => {
  const transforms = source.subject_transforms ?? []
  const filters = filtersOf(source)
  const taken = filters.length === 0 ? subjects : filters
  return taken.map((src) => transforms.find((one) => one.src === src) ?? { src, dest: "" })
}

/**
 * Returns a source that starts again. The broker knows a source by its name and filters, and
 * resumes after the last message that it copied by these: a changed start alone has no effect, and
 * neither has a source that is removed and added again. So a filter that matches nothing makes it
 * another source. The broker writes the filters into the header of each copy, which so names the
 * restart.
 */
const startedAgain = (
  source: StreamSource,
  subjects: ReadonlyArray<string>,
  divergence: Divergence,
  names: Names
): StreamSource => {
  const { filter_subject: _, ...rest } = source
  const mark = { src: names.subjects.restart(restartFor(divergence)), dest: "" }
  return {
    ...rest,
    opt_start_seq: divergence.start,
    subject_transforms: [...transformsOf(source, subjects), mark]
  }
}

/**
 * Starts sources of a stream again, where they lost what was copied. Needs the right to change the
 * stream. Does nothing for a source that was started again meanwhile; to start it twice for the same
 * reason is harmless.
 */
export const restartSources = Effect.fnUntraced(function* (divergences: ReadonlyArray<Divergence>) {
  const { ask, jsm, names, streamInfo } = yield* natsClients
  for (const [target, those] of Map.groupBy(divergences, ({ target }) => target)) {
    const { config } = yield* streamInfo(`look at ${target}`, target)
    const sources = yield* Effect.forEach(config.sources ?? [], (source) => {
      const divergence = those.find(
        ({ restarts, source: name }) =>
          name === source.name && restarts === (restartOf(source)?.number ?? 0)
      )
      if (divergence === undefined) return Effect.succeed(source)
      // Without filters it takes what the source does, which is in this account.
      const subjects =
        filtersOf(source).length > 0
          ? Effect.succeed([])
          : Effect.map(
              streamInfo(`look at ${source.name}`, source.name),
              ({ config }) => config.subjects ?? []
            )
      return Effect.map(subjects, (taken) => startedAgain(source, taken, divergence, names))
    })
    yield* ask(`start the sources of ${target} again`, () =>
      jsm.streams.update(target, { ...config, sources })
    )
  }
})

/**
 * Returns a stream's sources as they are wanted, except those that were started again. One that
 * starts further on, as after a restore, does so for good.
 */
export const keepingRestarts = (
  wanted: Partial<StreamConfig>,
  held: Partial<StreamConfig>
): Partial<Pick<StreamConfig, "sources">> =>
  wanted.sources === undefined
    ? {}
    : {
        sources: wanted.sources.map((source) => {
          const there = held.sources?.find(({ name }) => name === source.name)
          if (there === undefined) return source
          if (restartOf(there) !== undefined) return there
          const start = there.opt_start_seq ?? 0
          const { name, opt_start_seq = 0, ...rest } = source
          // In the broker's order: these are compared as texts.
          return start > opt_start_seq ? { name, opt_start_seq: start, ...rest } : source
        })
      }

/**
 * Starts sources again that lost what was copied from them, and returns them. Needs the right to
 * change streams.
 */
export const repairSources = Effect.gen(function* () {
  const before = yield* readRecord
  const { record } = yield* compareNew(before, true)
  if (record.divergences.length > 0) {
    yield* restartSources(record.divergences)
    const after = yield* compareNew(before, true)
    yield* writeRecord(after.record)
  }
  return record.divergences satisfies ReadonlyArray<Divergence>
})

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
  // The broker gives a stream without subjects its name as one, unless it has sources from the first.
  const subjects = config.subjects?.filter((subject) => subject !== target)
  const resumed = sources.map((source) => startedBehind(source, last.get(source.name)))
  yield* ask(`let ${target} copy from its sources`, () =>
    jsm.streams.update(target, { ...config, subjects, sources: resumed } as StreamConfig)
  )
})
