import { DeliverPolicy } from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import { Effect, Option, Schema } from "effect"
import { Broker } from "../broker/broker.ts"
import { consumerNotFound, ifFound } from "../broker/broker-error.ts"
import { routerConsumer, type WantedConsumer } from "../broker/consumers.ts"
import { restrictionsOfConsumer } from "../broker/restrictions.ts"
import { type StoredValue, writeValue } from "../broker/values.ts"
import type { Names } from "../domain/names.ts"
import type { Bypass, FloodTenants } from "../policy/bypass.ts"
import { closingForMs } from "../policy/bypass.ts"

/** Key in the bucket of workers. */
const key = "router.bypass"
/** How long the broker keeps the consumer when nobody pulls from it any more, ms. */
const unusedForMs = 60 * 60_000

const Stored = Schema.fromJsonString(
  Schema.Struct({
    v: Schema.Literal(1),
    state: Schema.Literals(["announced", "open", "closing", "none"]),
    tenants: Schema.Array(Schema.String),
    /** Absent where an older version stored it. */
    flooding: Schema.optionalKey(Schema.Array(Schema.String)),
    /** Undefined in an announcement: it is named after that one's revision and time. */
    consumer: Schema.optionalKey(Schema.String),
    from: Schema.optionalKey(Schema.Int)
  })
)
type Stored = typeof Stored.Type
const decode = Schema.decodeUnknownOption(Stored)
const encode = Schema.encodeSync(Stored)

/** The bypass that is stored, and the revision that its successor replaces. */
export interface StoredBypass {
  readonly bypass: Bypass | undefined
  readonly revision: number
}

/** Returns whether there is, or has been, a bypass, by the values of the bucket of workers. */
export const mayHaveBypass = (workers: ReadonlyArray<StoredValue>): boolean =>
  workers.some((value) => value.key === key)

/** Reads from the leader which bypass there is. */
export const readBypass: Effect.Effect<
  StoredBypass,
  Effect.Error<ReturnType<Broker["Service"]["readMessage"]>>,
  Broker
> = Effect.gen(function* () {
  const { names, readMessage } = yield* Broker
  const { workers } = names.buckets
  const entry = yield* readMessage("look which events pass a flood", `KV_${workers}`, {
    last_by_subj: `$KV.${workers}.${key}`
  })
  const revision = entry?.seq ?? 0
  const stored = Option.getOrUndefined(decode(entry?.string()))
  if (entry === null || stored === undefined || stored.state === "none")
    return { bypass: undefined, revision }
  const at = entry.time.getTime()
  const { consumer = `bypass-${revision}-${at}`, flooding = [], from, state, tenants } = stored
  const until = state === "closing" ? at + closingForMs : undefined
  return { bypass: { consumer, tenants: new Set(tenants), flooding, from, until }, revision }
})

/** Stores what a bypass becomes, unless it has changed since it was read. */
export const writeBypass = Effect.fnUntraced(function* (
  { bypass, revision }: StoredBypass,
  state: Stored["state"],
  from = bypass?.from
) {
  const { names } = yield* Broker
  const value: Stored = {
    v: 1,
    state,
    tenants: state === "none" ? [] : [...(bypass?.tenants ?? [])],
    flooding: state === "none" ? [] : (bypass?.flooding ?? []),
    ...(bypass === undefined || state === "announced" ? {} : { consumer: bypass.consumer }),
    ...(from === undefined || state === "none" ? {} : { from })
  }
  yield* writeValue(names.buckets.workers, key, encode(value), { expected: revision })
})

/** Announces a bypass for the events of the tenants that are to pass, where there is none. */
export const announceBypass = (stored: StoredBypass, { flooding, passing }: FloodTenants) => {
  const tenants = new Set(passing)
  const bypass = { consumer: "", tenants, flooding, from: undefined, until: undefined }
  return writeBypass({ ...stored, bypass }, "announced")
}

/** Returns the consumer of a bypass that begins at a sequence. @param ackWait ms */
const bypassConsumer = (
  names: Names,
  { consumer, tenants }: Bypass,
  from: number,
  ackWait: number
): WantedConsumer => ({
  ...routerConsumer(names, ackWait),
  durable_name: consumer,
  filter_subjects: [...tenants].flatMap((tenant) => [
    names.subjects.eventsOf(tenant),
    names.subjects.alertEvent(tenant, ">")
  ]),
  deliver_policy: DeliverPolicy.StartSequence,
  opt_start_seq: from,
  inactive_threshold: nanos(unusedForMs)
})

/**
 * Makes the consumer of a bypass, unless there is one.
 *
 * @param ackWait ms
 * @returns the first sequence that it gives.
 */
export const makeBypassConsumer = Effect.fnUntraced(function* (
  bypass: Bypass,
  from: number,
  ackWait: number
) {
  const { consumerInfo, makeConsumer, names } = yield* Broker
  const look = consumerInfo("look at the bypass", names.events, bypass.consumer)
  const known = yield* ifFound(look, consumerNotFound)
  if (known === undefined)
    yield* makeConsumer(
      "make the bypass",
      names.events,
      bypassConsumer(names, bypass, from, ackWait)
    )
  const { config } = known ?? (yield* look)
  return config.opt_start_seq ?? from
})

/** Reads the consumer of an open bypass, and by which fields somebody else's tool has changed it. */
const lookAtBypass = Effect.fnUntraced(function* (bypass: Bypass) {
  const { consumerInfo, names } = yield* Broker
  const look = consumerInfo("look at the bypass", names.events, bypass.consumer)
  const info = yield* ifFound(look, consumerNotFound)
  const { from = 0 } = bypass
  return {
    info,
    changed:
      info === undefined ? [] : restrictionsOfConsumer(info, bypassConsumer(names, bypass, from, 0))
  }
})

/** Returns the fields by which the consumer of a bypass hands out too little, as it was changed. */
export const readBypassChanges = (bypass: Bypass | undefined) =>
  bypass?.from === undefined
    ? Effect.succeed([])
    : Effect.map(lookAtBypass(bypass), ({ changed }) => changed)

/**
 * Reads up to which sequence all events of a bypass are routed; undefined where that is not known,
 * as of a consumer that begins at another sequence, or was given other filters.
 */
export const readBypassFloor = Effect.fnUntraced(function* (bypass: Bypass) {
  const { changed, info } = yield* lookAtBypass(bypass)
  return info === undefined || changed.length > 0 || info.config.opt_start_seq !== bypass.from
    ? undefined
    : info.ack_floor.stream_seq
})
