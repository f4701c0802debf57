import { Context, Effect, Layer } from "effect"
import { Broker } from "./broker.ts"
import { ifFound, streamNotFound } from "./broker-error.ts"
import { natsClients } from "./clients.ts"
import type { BrokerOptions } from "./connection.ts"
import { openBroker } from "./connection.ts"
import { readLayoutRecord, TopologyError } from "./installed.ts"
import { wireOf } from "./wire.ts"

/**
 * The account that decides who may ask the API, where it is not the account of the streams: it holds
 * the tokens, and requests over NATS arrive there. Whoever may publish to one subject of the streams'
 * account can write to each of them (SECURITY.md). Undefined: everything is in one account.
 */
export const AccessBroker = Context.Reference<Broker["Service"] | undefined>(
  "petrel/broker/AccessBroker",
  { defaultValue: () => undefined }
)

/** Connects to the account of access. */
export const accessTo = (options: BrokerOptions) =>
  Layer.effect(AccessBroker, openBroker({ ...options, isAccess: true }))

/** Carries out with the account of access what needs a broker. */
export const inAccess = <A, E, R>(effect: Effect.Effect<A, E, R | Broker>) =>
  Effect.flatMap(
    AccessBroker,
    (access): Effect.Effect<A, E, R | Broker> =>
      access === undefined ? effect : Effect.provideService(effect, Broker, access)
  )

/**
 * Returns whether the account of access is connected now. Always true where there is none: with the
 * broker of the streams nothing else works, either.
 */
export const accessConnection = Effect.gen(function* () {
  if ((yield* AccessBroker) === undefined) return () => true
  const { connection } = yield* inAccess(natsClients)
  const wire = wireOf(connection)
  return () => wire.isConnected && !wire.isClosed
})

/**
 * Fails unless the account of access is the one that the installation was made with, and has its
 * bucket.
 */
export const requireAccess = Effect.gen(function* () {
  const access = yield* AccessBroker
  const { record } = yield* readLayoutRecord
  if (record.isAccessApart === true && access === undefined)
    return yield* new TopologyError({
      message:
        "this installation keeps its tokens in an account of their own (ACCESS in nats.conf): give the login of a user of it in NATS_ACCESS_URL, or with --access-creds or --access-nkey"
    })
  if (record.partitions === undefined) return
  if (record.isAccessApart !== true && access !== undefined)
    return yield* new TopologyError({
      message:
        "this installation keeps its tokens in the account of its streams, and NATS_ACCESS_URL names another one: run `petrel init` with it first"
    })
  yield* inAccess(
    Effect.gen(function* () {
      const { names, streamInfo } = yield* Broker
      const stream = `KV_${names.buckets.tokens}`
      const found = yield* ifFound(streamInfo(`look at ${stream}`, stream), streamNotFound)
      if (found === undefined)
        return yield* new TopologyError({
          message: `${stream} is missing on the broker: run \`petrel init\`, which makes it again; its tokens are lost`
        })
    })
  )
})
