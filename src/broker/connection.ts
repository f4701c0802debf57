import type { JetStreamManager } from "@nats-io/jetstream"
import { JetStreamApiError, jetstream, jetstreamManager } from "@nats-io/jetstream"
import type { KV } from "@nats-io/kv"
import { Kvm } from "@nats-io/kv"
import type { NatsConnection, NodeConnectionOptions } from "@nats-io/transport-node"
import { AuthorizationError, errors, PermissionViolationError } from "@nats-io/transport-node"
import { Effect, Layer, Result, Semaphore } from "effect"
import { makeNames } from "../domain/names.ts"
import { readAddress, shownAddress, withoutLogin } from "./address.ts"
import { Broker } from "./broker.ts"
import { ask, BrokerUnusable } from "./broker-error.ts"
import type { Clients } from "./clients.ts"
import { natsClients, registerClients } from "./clients.ts"
import type { CredentialFiles } from "./credentials.ts"
import { credentialsOf, expiryText } from "./credentials.ts"
import { operationsOf } from "./nats-operations.ts"
import { logPermissions } from "./permissions.ts"
import { Publisher } from "./publisher.ts"
import type { ConnectFailed } from "./transport.ts"
import { connect } from "./transport.ts"
import { Unanswered } from "./unanswered.ts"
import { failRequests, wireOf } from "./wire.ts"

const oldestServer = [2, 12] as const

/** Concurrent searches through streams. */
const searches = 4

/** How to reach a broker, and the names that the installation uses on it. */
export interface BrokerOptions extends CredentialFiles {
  /**
   * One URL, or several separated by commas, in the form that `readAddress` accepts; `tls://…` asks
   * for TLS.
   */
  readonly url: string
  /**
   * Prefix of stream names. Names of buckets and subjects are derived from it. (Default: "PETREL_")
   */
  readonly prefix?: string | undefined
  /** The first token of event subjects. (Default: "events") */
  readonly eventRoot?: string | undefined
  /** True for the account of tokens, whose login has flags of its own. (Default: false) */
  readonly isAccess?: boolean | undefined
  /** Shown in the broker's list of connections. (Default: "petrel") */
  readonly clientName?: string | undefined
  /** How long an acknowledgement of a publish may take, ms. (Default: 5000) */
  readonly publishTimeoutMs?: number | undefined
}

/** Connects to a NATS server. */
export const connectTo = (options: BrokerOptions): Layer.Layer<Broker, BrokerUnusable> =>
  Layer.effect(Broker, openBroker(options))

/**
 * Closes the connection to a broker that does not come back: requests in flight fail at once, and
 * so do later ones.
 */
export const abandon = Effect.flatMap(natsClients, ({ connection, publisher }) =>
  Effect.ignoreCause(
    Effect.promise(() => {
      publisher.close()
      return connection.close()
    })
  )
)

/** Opens a connection until the scope closes, in addition to that of the context. */
export const openBroker = Effect.fnUntraced(function* (options: BrokerOptions) {
  const shown = shownAddress(options.url)
  const address = readAddress(options.url)
  if (address === undefined)
    return yield* new BrokerUnusable({ message: `${shown} is not the address of a NATS server` })
  const credentials = credentialsOf(address, options)
  if (Result.isFailure(credentials))
    return yield* new BrokerUnusable({ message: credentials.failure })
  const failures: Failures = { told: undefined }
  const connection = yield* Effect.acquireRelease(
    dial(options, { ...credentials.success, servers: [...address.servers] }, failures),
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
    // The client's own check fails for users without permission for account information but have
    // all permissions that they need.
    jetstreamManager(connection, { timeout: 10_000, checkAPI: false })
  )
  yield* checkJetStream(jsm, shown, connection.info?.jetstream === true)
  const js = jetstream(connection)
  const names = makeNames(options.prefix, options.eventRoot)
  const permissions = yield* logPermissions
  const wire = wireOf(connection, permissions.receive)
  const publisher = yield* Effect.acquireRelease(
    Effect.sync(
      () => new Publisher(wire, new Unanswered(names.streamOf), names, options.publishTimeoutMs)
    ),
    (publisher) => Effect.sync(() => publisher.close())
  )
  publisher.outbound.isStored = async (stream, seq, at) =>
    (await jsm.streams.getMessage(stream, { seq }))?.time.getTime() === at
  const listeners = yield* watchStatus(connection, options, failures, permissions.publish)
  listeners.add(() => publisher.reconnected())
  const onReconnect: Broker["Service"]["onReconnect"] = (listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  const kvm = new Kvm(connection)
  /** Buckets that were opened: that takes a request. */
  const opened = new Map<string, KV>()
  const bucket: Clients["bucket"] = (name) => {
    const known = opened.get(name)
    if (known !== undefined) return Effect.succeed(known)
    return ask(`open the bucket ${name}`, async () => {
      const kv = await kvm.open(name, { allow_direct: false })
      opened.set(name, kv)
      return kv
    })
  }
  const clients: Clients = { bucket, connection, js, jsm, publisher, wire }
  const broker = Broker.of({
    names,
    oneOfFew: yield* Semaphore.make(searches),
    ...operationsOf(clients, onReconnect)
  })
  registerClients(broker, clients)
  return broker
})

/** Who is told of attempts to connect that fail, once there was a connection. */
interface Failures {
  told: ConnectFailed | undefined
}

/**
 * Connects the client. Where several servers were tried in vain, it fails with the first that refuses
 * what it was given, rather than with the last that does not answer.
 */
const dial = (
  options: BrokerOptions,
  given: Pick<NodeConnectionOptions, "servers" | "tls">,
  failures: Failures
) => {
  let refused: Parameters<ConnectFailed> | undefined
  const several = Array.isArray(given.servers) && given.servers.length > 1
  return Effect.tryPromise({
    try: () =>
      connect(
        {
          ...given,
          name: options.clientName ?? "petrel",
          maxReconnectAttempts: -1,
          // While a password is being changed on both sides, logins fail for a while; a worker
          // outlives that.
          ignoreAuthErrorAbort: true,
          reconnectTimeWait: 250,
          reconnectJitter: 250,
          // A server that hangs is left after three intervals, by when its streams have other leaders
          // and this process's leases have ended.
          pingInterval: 4_000,
          maxPingOut: 2,
          // The client otherwise takes two stack traces for each request: a third of what it costs.
          // What fails says by itself what was asked.
          noAsyncTraces: true,
          timeout: 5_000
        },
        (cause, server) => {
          if (isRefused(cause)) refused ??= [cause, server]
          failures.told?.(cause, server)
        }
      ),
    catch: (cause) => {
      if (refused === undefined) return unreachable(options, cause)
      const [why, server] = refused
      return unreachable(options, why, several ? server : undefined)
    }
  })
}

/** Validity of a certificate by the clock of this machine. */
const ofValidity: ReadonlySet<string> = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"])
const ofTls = /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/

const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : ""

/** What the broker says of a client's certificate that it refuses or misses. */
const ofClientCertificate = /^ERR_SSL_.*_ALERT_(.*CERTIFICATE.*|UNKNOWN_CA)$/
/** Nobody who is trusted has issued the certificate. */
const ofIssuer = /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/
/** Node's own advice is about a flag that Petrel does not have. */
const adviceOfNode = /; if the root CA is installed locally.*/
const tooMany = /^maximum .*connections exceeded/
const withoutTls = "server does not support 'tls'"

/** True for what does not pass by itself: a login or a certificate that is refused, or no TLS. */
const isRefused = (cause: unknown): boolean =>
  cause instanceof AuthorizationError ||
  cause instanceof errors.ProtocolError ||
  ofTls.test(codeOf(cause)) ||
  (cause instanceof Error && cause.message === withoutTls)

/** @param shown the address that was tried. (Default: all of them) */
const unreachable = (
  options: BrokerOptions,
  cause: unknown,
  shown: string = shownAddress(options.url)
) => {
  const { ca, cert, creds, nkey, url } = options
  if (cause instanceof AuthorizationError) {
    const given =
      creds !== undefined
        ? `the credentials in ${creds}${expiryText(creds)}`
        : nkey !== undefined
          ? `the nkey in ${nkey}`
          : options.isAccess === true
            ? "the user or password for the account of tokens: give others with --access-creds or --access-nkey, or as nats://user:password@host:4222 in NATS_ACCESS_URL"
            : "this user or password: give others with --creds or --nkey, or as nats://user:password@host:4222 in NATS_URL"
    return new BrokerUnusable({ message: `the broker at ${shown} refuses ${given}` })
  }
  const why = withoutLogin(
    cause instanceof Error ? cause.message.replace(adviceOfNode, "") : String(cause),
    url
  )
  if (cause instanceof errors.ProtocolError)
    return new BrokerUnusable({
      message: `the broker at ${shown} accepts no connection (${why})${tooMany.test(why) ? ": raise that limit, max_connections in its configuration or `conn` in the JWT of the account or user, or end other connections" : ""}`
    })
  if (codeOf(cause) === "ERR_TLS_CERT_ALTNAME_INVALID")
    return new BrokerUnusable({
      message: `the broker at ${shown} has a certificate for another name (${why}): address it by a name that the certificate has, or give it one for this name`
    })
  if (ofValidity.has(codeOf(cause)))
    return new BrokerUnusable({
      message: `the certificate of the broker at ${shown}, or that of its authority, is not valid now (${why}): renew it and reload the broker (nats-server --signal reload), or correct the clock of this machine`
    })
  if (ofClientCertificate.test(codeOf(cause)))
    return new BrokerUnusable({
      message:
        cert === undefined
          ? `the broker at ${shown} requires a client certificate: give one with --nats-cert and --nats-key`
          : `the broker at ${shown} refuses the certificate in ${cert} (${alertOf(cause)}): it must be issued by an authority that the broker trusts (ca_file), be for clients, and be valid now`
    })
  if (ca !== undefined && ofIssuer.test(codeOf(cause)))
    return new BrokerUnusable({
      message: `the certificate of the broker at ${shown} was not issued by an authority in ${ca} (${why}): add the certificate of its authority to that file, or give the broker a certificate of an authority in it`
    })
  if (ofTls.test(codeOf(cause)))
    return new BrokerUnusable({
      message: `TLS with the broker at ${shown} failed (${why}): name the authority of its certificate with --nats-ca`
    })
  if (why === withoutTls)
    return new BrokerUnusable({
      message: `the broker at ${shown} has no TLS, which ${ca === undefined ? "tls:// requires" : "--nats-ca and tls:// require"}: enable it there (tls in nats.conf), or connect without it`
    })
  // What it says of a client's certificate is lost where it resets the connection at once.
  const orRefuses =
    ca !== undefined || readAddress(url)?.tls === true
      ? ", whether it requires or refuses your certificate (--nats-cert, --nats-key)"
      : ""
  const whatToDo =
    cause instanceof errors.TimeoutError
      ? `Check whether it hangs${orRefuses}, whether something else listens there, and whether a firewall is in between`
      : "Start one with `petrel dev`, or give its address with --nats or NATS_URL"
  return new BrokerUnusable({ message: `no NATS server answers at ${shown} (${why}). ${whatToDo}` })
}

/** Returns what the broker said when it ended TLS: "certificate expired". */
const alertOf = (cause: unknown): string =>
  codeOf(cause)
    .replace(/^.*_ALERT_/, "")
    .replaceAll("_", " ")
    .toLowerCase()

/** @param isOffered true if the server has JetStream, if not for this account. */
const checkJetStream = (jsm: JetStreamManager, shown: string, isOffered: boolean) =>
  Effect.tryPromise({ try: () => jsm.getAccountInfo(), catch: (cause) => cause }).pipe(
    Effect.catch((cause) =>
      isWithoutJetStream(cause)
        ? Effect.fail(
            new BrokerUnusable({
              message: isOffered
                ? `the account of this user has no JetStream at ${shown}: a tenant's user publishes to the subjects events.<tenant>.<type> with a NATS client of its own, or asks the API; commands need a user of Petrel's account, see nats.conf`
                : `the broker at ${shown} has no JetStream: start nats-server with -js, or see nats.conf; a cluster's server turns it off when its disk is full, and needs free space and a restart`
            })
          )
        : Effect.void
    )
  )

const notEnabledForAccount = 10039

/** True if nothing answers on the JetStream API, or JetStream is disabled for the account. */
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

/** True where nothing listens at the address. */
const isDown = (cause: Error): boolean => cause.message === "connection refused"

/** Returns what is wrong by now with the files that the connection was made with. */
const flawOf = (options: BrokerOptions): string | undefined => {
  const address = readAddress(options.url)
  const found = address === undefined ? undefined : credentialsOf(address, options)
  return found !== undefined && Result.isFailure(found) ? found.failure : undefined
}

/**
 * Logs each disconnect and reconnect once, and in between what keeps the broker from taking the
 * connection, where that does not pass by itself. Calls the reconnect listeners. Fails the requests
 * that will not be answered: at a disconnect those that were sent, at a reconnect those that were not.
 */
const watchStatus = Effect.fnUntraced(function* (
  connection: NatsConnection,
  options: BrokerOptions,
  failures: Failures,
  mayNotPublish: (subject: string) => void
) {
  const shown = shownAddress(options.url)
  const listeners = new Set<() => void>()
  const run = Effect.runForkWith(yield* Effect.context<never>())
  let gone = false
  /** What was logged of this outage. */
  const said = new Set<string>()
  failures.told = (cause, server) => {
    if (connection.isDraining()) return
    const flaw = isDown(cause) ? undefined : flawOf(options)
    if (flaw === undefined && !isRefused(cause)) return
    const message = flaw ?? unreachable(options, cause, server).message
    if (said.has(message)) return
    said.add(message)
    run(Effect.logWarning(`${message}; trying again`))
  }
  const follow = async () => {
    for await (const status of connection.status()) {
      // Each failed attempt to connect is told as a disconnect, too.
      if (status.type === "disconnect" && !gone && !connection.isDraining()) {
        gone = true
        failRequests(connection)
        run(Effect.logWarning("the broker is gone; waiting for it", { nats: shown }))
      }
      if (status.type === "error" && status.error instanceof PermissionViolationError)
        if (status.error.operation === "publish") mayNotPublish(status.error.subject)
      if (status.type === "reconnect") {
        if (gone) run(Effect.logInfo("the broker is back", { nats: shown }))
        gone = false
        said.clear()
        // The client has dropped what was asked meanwhile.
        failRequests(connection)
        for (const listener of listeners) listener()
      }
    }
  }
  follow().catch(() => undefined)
  return listeners
})
