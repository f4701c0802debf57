import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream"
import { JetStreamApiError, jetstream, jetstreamManager } from "@nats-io/jetstream"
import type { KV } from "@nats-io/kv"
import { Kvm } from "@nats-io/kv"
import type { NatsConnection } from "@nats-io/transport-node"
import { AuthorizationError, connect } from "@nats-io/transport-node"
import { Context, Effect, Layer, Schema, Semaphore } from "effect"
import type { Names } from "../domain/names.ts"
import { makeNames } from "../domain/names.ts"
import { Publisher } from "./publisher.ts"

const oldestServer = [2, 12] as const

/** A broker that cannot be used at all: unreachable, too old, or without JetStream. */
export class BrokerUnusable extends Schema.TaggedError<BrokerUnusable>()("BrokerUnusable", {
  message: Schema.String
}) {}

/** One request to the broker failed. */
export class BrokerError extends Schema.TaggedError<BrokerError>()("BrokerError", {
  operation: Schema.String,
  cause: Schema.Defect()
}) {
  override get message() {
    return `${this.operation}: ${this.cause instanceof Error ? this.cause.message : String(this.cause)}`
  }
  /** JetStream's err_code (10059: stream not found), where it answered with one. */
  get code(): number | undefined {
    return this.cause instanceof JetStreamApiError ? this.cause.code : undefined
  }
}

/** Searches through streams at the same time. */
const searches = 4

/** How to reach a broker, and the names of the installation on it. */
export interface BrokerOptions {
  /** One URL or several with commas: `nats://user:password@127.0.0.1:4222`; `tls://…` asks for TLS. */
  readonly url: string
  /** Of streams; buckets and subjects follow from it. (Default: "PETREL_") */
  readonly prefix?: string | undefined
  /** The first token of event subjects. (Default: "events") */
  readonly eventRoot?: string | undefined
  /** Shown in the broker's list of connections. (Default: "petrel") */
  readonly clientName?: string | undefined
  /** How long an acknowledgement of a publish may take, ms. (Default: 5000) */
  readonly publishTimeoutMs?: number | undefined
}

/** A connection to NATS with everything that is made from it, and the installation's names. */
export class Broker extends Context.Service<
  Broker,
  {
    readonly connection: NatsConnection
    readonly js: JetStreamClient
    readonly jsm: JetStreamManager
    readonly publisher: Publisher
    readonly names: Names
    /** Runs a request, its rejection as a BrokerError that names the operation. */
    readonly ask: <A>(operation: string, run: () => Promise<A>) => Effect.Effect<A, BrokerError>
    readonly bucket: (name: string) => Effect.Effect<KV, BrokerError>
    /**
     * Bounds searches through streams. When a broker comes back, what may have been stored is looked
     * for a thousand times at once, and each look holds up to 4 MiB.
     */
    readonly oneOfFew: Semaphore.Semaphore
    /** Calls `listener` on each reconnect, until the returned function is called. */
    readonly onReconnect: (listener: () => void) => () => void
  }
>()("petrel/broker/Broker") {
  static readonly layer = (options: BrokerOptions): Layer.Layer<Broker, BrokerUnusable> =>
    Layer.effect(Broker, open(options))
}

/**
 * Lets go of a broker that does not come back: what waits for its answer fails at once, and so does
 * what is asked later.
 */
export const abandon = Effect.flatMap(Broker, ({ connection, publisher }) =>
  Effect.ignoreCause(
    Effect.promise(() => {
      publisher.close()
      return connection.close()
    })
  )
)

const ask = <A>(operation: string, run: () => Promise<A>): Effect.Effect<A, BrokerError> =>
  Effect.tryPromise({ try: run, catch: (cause) => new BrokerError({ operation, cause }) })

const open = Effect.fnUntraced(function* (options: BrokerOptions) {
  const connection = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        connect({
          ...serversOf(options.url),
          name: options.clientName ?? "petrel",
          maxReconnectAttempts: -1,
          // A password that is changed on both sides is wrong for a while; a worker outlives that.
          ignoreAuthErrorAbort: true,
          reconnectTimeWait: 250,
          reconnectJitter: 250,
          pingInterval: 10_000,
          maxPingOut: 2,
          timeout: 5_000
        }),
      catch: (cause) => unreachable(options.url, cause)
    }),
    (connection) =>
      Effect.suspend(() =>
        connection.isClosed()
          ? Effect.void
          : Effect.promise(() => connection.drain()).pipe(
              Effect.timeoutOrElse({ duration: "1 second", orElse: () => Effect.void }),
              Effect.andThen(Effect.promise(() => connection.close())),
              Effect.ignoreCause
            )
      )
  )
  yield* checkServer(connection)
  const jsm = yield* Effect.promise(() =>
    // Its own check fails for users who may not ask about the account but may do what they came for.
    jetstreamManager(connection, { timeout: 10_000, checkAPI: false })
  )
  yield* checkJetStream(jsm, options.url)
  const js = jetstream(connection)
  const publisher = yield* Effect.acquireRelease(
    Effect.sync(() => new Publisher(connection, options.publishTimeoutMs)),
    (publisher) => Effect.sync(() => publisher.close())
  )
  publisher.outbound.isStored = async (stream, seq, at) =>
    (await jsm.streams.getMessage(stream, { seq }))?.time.getTime() === at
  const listeners = yield* watchStatus(connection, options.url)
  listeners.add(() => publisher.reconnected())
  const kvm = new Kvm(connection)
  return Broker.of({
    connection,
    js,
    jsm,
    publisher,
    names: makeNames(options.prefix, options.eventRoot),
    ask,
    bucket: (name) => ask(`open the bucket ${name}`, () => kvm.open(name, { allow_direct: false })),
    oneOfFew: yield* Semaphore.make(searches),
    onReconnect: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    }
  })
})

/** The client takes user and password beside its addresses, not in them. */
const serversOf = (url: string) => {
  const parsed = url
    .split(",")
    .map((text) => new URL(text.includes("://") ? text : `nats://${text}`))
  const named = parsed.find(({ username }) => username !== "")
  return {
    servers: parsed.map(({ host }) => host),
    ...(parsed.some(({ protocol }) => protocol === "tls:") ? { tls: {} } : {}),
    ...(named === undefined
      ? {}
      : named.password === ""
        ? { token: decodeURIComponent(named.username) }
        : { user: decodeURIComponent(named.username), pass: decodeURIComponent(named.password) })
  }
}

/** An address as it may be shown: without its password. */
const shown = (url: string): string => url.replaceAll(/\/\/[^@/,]*@/g, "//")

const unreachable = (url: string, cause: unknown) =>
  new BrokerUnusable({
    message:
      cause instanceof AuthorizationError
        ? `the broker at ${shown(url)} refuses this user or password: give them as nats://user:password@host:4222, with --nats or NATS_URL`
        : `no NATS server answers at ${shown(url)} (${cause instanceof Error ? cause.message : String(cause)}). Start one with \`petrel dev\`, or give its address with --nats or NATS_URL`
  })

const checkJetStream = (jsm: JetStreamManager, url: string) =>
  Effect.tryPromise({ try: () => jsm.getAccountInfo(), catch: (cause) => cause }).pipe(
    Effect.catch((cause) =>
      isWithoutJetStream(cause)
        ? Effect.fail(
            new BrokerUnusable({
              message: `the broker at ${shown(url)} has no JetStream for this account: start nats-server with -js, or see nats.conf`
            })
          )
        : Effect.void
    )
  )

const notEnabledForAccount = 10039

/** Nobody listens where JetStream would, or the account may not use it. */
const isWithoutJetStream = (cause: unknown): boolean =>
  cause instanceof JetStreamApiError
    ? cause.code === notEnabledForAccount
    : cause instanceof Error && cause.name === "JetStreamNotEnabled"

const checkServer = (connection: NatsConnection) => {
  const version = connection.info?.version ?? "0"
  const [major = 0, minor = 0] = version.split(".").map(Number)
  const fits = major > oldestServer[0] || (major === oldestServer[0] && minor >= oldestServer[1])
  return fits
    ? Effect.void
    : Effect.fail(
        new BrokerUnusable({
          message: `nats-server ${version} is too old: Petrel needs ${oldestServer.join(".")} or newer (message schedules, TTLs)`
        })
      )
}

/** Says once that the broker is gone and once that it is back, and tells those who must re-read. */
const watchStatus = Effect.fnUntraced(function* (connection: NatsConnection, url: string) {
  const listeners = new Set<() => void>()
  const run = Effect.runForkWith(yield* Effect.context<never>())
  let gone = false
  const follow = async () => {
    for await (const status of connection.status()) {
      if (status.type === "disconnect" && !gone && !connection.isDraining()) {
        gone = true
        run(Effect.logWarning("the broker is gone; waiting for it", { nats: shown(url) }))
      }
      if (status.type === "reconnect") {
        if (gone) run(Effect.logInfo("the broker is back", { nats: shown(url) }))
        gone = false
        for (const listener of listeners) listener()
      }
    }
  }
  follow().catch(() => undefined)
  return listeners
})
