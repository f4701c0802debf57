import { Effect } from "effect"
import { Broker } from "./connection.ts"
import {
  consumerNotFound,
  findPartitions,
  ifFound,
  streamNotFound,
  TopologyError
} from "./installed.ts"
import type { TopologyOptions, WantedConsumer, WantedStream } from "./topology.ts"
import { wanted } from "./topology.ts"

/** What was there already, what was made, what was changed and in which fields. */
export interface Change {
  readonly what: string
  readonly change: "unchanged" | "created" | "updated"
  readonly fields: ReadonlyArray<string>
}

/**
 * Makes what is missing, and changes what differs and may be changed.
 * Looks before it writes: re-creating a consumer can destroy its state.
 */
export const init = Effect.fnUntraced(function* (options: TopologyOptions) {
  const { ask, connection, jsm, names } = yield* Broker
  const { begun, partitions: found } = yield* findPartitions
  if (found !== undefined && found !== options.partitions)
    return yield* new TopologyError({
      message: `this installation has ${found} partitions and init cannot make them ${options.partitions}: say --partitions ${found}, or leave the flag out`
    })
  if (begun > options.partitions)
    return yield* new TopologyError({
      message: `an init with ${begun} partitions was broken off: finish it with --partitions ${begun}`
    })
  const changes: Array<Change> = []
  for (const item of wanted(names, options, connection.info?.max_payload ?? 1_048_576)) {
    changes.push(yield* ensureStream(item.stream))
    if (item.consumer !== undefined)
      changes.push(yield* ensureConsumer(item.stream.name, item.consumer))
  }
  return changes

  function ensureStream(stream: WantedStream) {
    const what = `stream ${stream.name}`
    return Effect.gen(function* () {
      const info = yield* ifFound(
        ask(`look at ${what}`, () => jsm.streams.info(stream.name)),
        streamNotFound
      )
      if (info === undefined) {
        yield* ask(`make ${what}`, () => jsm.streams.add(stream))
        return { what, change: "created", fields: [] } satisfies Change
      }
      const fields = differing(stream, info.config)
      if (fields.length === 0) return { what, change: "unchanged", fields } satisfies Change
      yield* ask(`change ${fields.join(", ")} of ${what}`, () =>
        jsm.streams.update(stream.name, { ...info.config, ...stream })
      )
      return { what, change: "updated", fields } satisfies Change
    })
  }

  function ensureConsumer(stream: string, consumer: WantedConsumer) {
    const name = consumer.durable_name ?? ""
    const what = `consumer ${name} of ${stream}`
    return Effect.gen(function* () {
      const info = yield* ifFound(
        ask(`look at ${what}`, () => jsm.consumers.info(stream, name)),
        consumerNotFound
      )
      if (info === undefined) {
        yield* ask(`make ${what}`, () => jsm.consumers.add(stream, consumer))
        return { what, change: "created", fields: [] } satisfies Change
      }
      const fields = differing(consumer, info.config)
      if (fields.length === 0) return { what, change: "unchanged", fields } satisfies Change
      yield* ask(`change ${fields.join(", ")} of ${what}`, () =>
        jsm.consumers.update(stream, name, consumer)
      )
      return { what, change: "updated", fields } satisfies Change
    })
  }
})

/** Fields of `want` that `have` says otherwise. The broker leaves defaults out of its answers. */
const differing = (want: object, have: object): ReadonlyArray<string> => {
  const actual = new Map(Object.entries(have))
  return Object.entries(want)
    .filter(([field, value]) => {
      const there = actual.get(field)
      if (there === undefined) return value !== false && value !== -1 && value !== 0
      return JSON.stringify(there) !== JSON.stringify(value)
    })
    .map(([field]) => field)
}
