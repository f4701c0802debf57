import { Config, Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { AccessBroker, accessTo, requireAccess } from "../broker/access.ts"
import { readAddress, shownAddress } from "../broker/address.ts"
import { Broker } from "../broker/broker.ts"
import { connectTo, openBroker } from "../broker/connection.ts"
import { Monitors } from "../broker/monitor.ts"
import { patientBroker } from "../broker/patient.ts"
import { Facts } from "../history/facts.ts"
import { print } from "./terminal/stdout.ts"

const defaultUrl = "nats://127.0.0.1:4222"

/** A text flag that falls back to an environment variable. An empty value counts as not given. */
const setting = (name: string, variable: string, fallback: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(`${description} (default: ${variable}, else ${fallback})`),
    Flag.withFallbackConfig(Config.String(variable)),
    Flag.withDefault(fallback),
    Flag.map((value) => (value === "" ? fallback : value))
  )

const matching = (pattern: RegExp, problem: string) => (flag: Flag.Flag<string>) =>
  Flag.filterMap(
    flag,
    (value) => (pattern.test(value) ? Option.some(value) : Option.none()),
    () => problem
  )

/** A file flag that falls back to an environment variable. An empty value counts as not given. */
const credentialFile = (name: string, variable: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("FILE"),
    Flag.withDescription(`${description} (default: ${variable})`),
    Flag.withFallbackConfig(Config.String(variable)),
    Flag.withDefault(""),
    Flag.map((path) => (path === "" ? undefined : path))
  )

/** The root command. `yield* petrel` returns the global flags. */
export const petrel = Command.make("petrel").pipe(
  Command.withDescription("Deliver webhooks from NATS JetStream, and keep at it"),
  Command.withSharedFlags({
    nats: setting("nats", "NATS_URL", defaultUrl, "The NATS server").pipe(
      Flag.withMetavar("URL"),
      Flag.filter(
        (text) => readAddress(text) !== undefined,
        () => `must be an address such as ${defaultUrl}`
      )
    ),
    creds: credentialFile("creds", "NATS_CREDS", "A NATS user's credentials, as nsc writes them"),
    nkey: credentialFile("nkey", "NATS_NKEY", "A NATS user's seed"),
    ca: credentialFile("nats-ca", "NATS_CA", "Certificates that vouch for the server's, in PEM"),
    cert: credentialFile("nats-cert", "NATS_CERT", "Your certificate for the server, in PEM"),
    key: credentialFile("nats-key", "NATS_KEY", "Its key, in PEM"),
    monitors: Flag.String("nats-monitor").pipe(
      Flag.withMetavar("URL[,URL]"),
      Flag.withDescription(
        "The monitoring ports of the broker's servers, for their health in the status, such as http://127.0.0.1:8222 (default: NATS_MONITOR_URL)"
      ),
      Flag.withFallbackConfig(Config.String("NATS_MONITOR_URL")),
      Flag.withDefault(""),
      Flag.filterMap(
        (text) => {
          const urls = text.split(",").filter((url) => url !== "")
          const areUrls = urls.every((url) => /^https?:$/.test(URL.parse(url)?.protocol ?? ""))
          return areUrls ? Option.some(urls) : Option.none()
        },
        () => "must be addresses such as http://127.0.0.1:8222"
      )
    ),
    access: Flag.String("access-nats").pipe(
      Flag.withMetavar("URL"),
      Flag.withDescription(
        "The NATS server, with a login in the account of tokens, if they have one (default: NATS_ACCESS_URL)"
      ),
      Flag.withFallbackConfig(Config.String("NATS_ACCESS_URL")),
      Flag.withDefault(""),
      Flag.filter(
        (text) => text === "" || readAddress(text) !== undefined,
        () => `must be an address such as ${defaultUrl}`
      )
    ),
    accessCreds: credentialFile("access-creds", "NATS_ACCESS_CREDS", "That user's credentials"),
    accessNkey: credentialFile("access-nkey", "NATS_ACCESS_NKEY", "That user's seed"),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Print one JSON object per line"),
      Flag.withDefault(false),
      Flag.withoutNegation
    ),
    prefix: setting(
      "prefix",
      "PETREL_PREFIX",
      "PETREL_",
      "What the names of all streams begin with"
    ).pipe(
      Flag.withMetavar("TEXT"),
      matching(
        /^[A-Za-z0-9_-]{1,32}$/,
        "must be 1 to 32 letters, digits, - or _, such as PETREL_ or ACME_"
      )
    ),
    events: setting("events", "PETREL_EVENTS", "events", "What event subjects begin with").pipe(
      Flag.withMetavar("SUBJECT"),
      matching(
        /^[A-Za-z0-9_-]{1,64}(\.[A-Za-z0-9_-]{1,64}){0,7}$/,
        "must be the beginning of a subject, such as events or platform.events"
      )
    )
  })
)

/** The broker's connection options from the flags. */
export const brokerOptions = Effect.map(
  petrel,
  ({ ca, cert, creds, events, key, nats, nkey, prefix }) => ({
    ...{ url: nats, creds, nkey, ca, cert, key },
    prefix,
    eventRoot: events
  })
)

/** @param variable the same of the environment, which other users cannot read. */
const warnOfLogin = (url: string, flag: string, variable: string, files: string) =>
  readAddress(url)?.login !== undefined && process.env[variable] !== url
    ? Effect.logWarning(
        `other users of this machine see the login in ${flag} while this runs: use ${variable}, ${files}`
      )
    : Effect.void

const broker = Layer.unwrap(
  Effect.gen(function* () {
    const options = yield* brokerOptions
    yield* warnOfLogin(options.url, "--nats", "NATS_URL", "--creds or --nkey")
    return connectTo(options)
  })
)

/** The connection options for the account of tokens; undefined where no login for it is given. */
const accessOptions = Effect.gen(function* () {
  const { access: url, accessCreds: creds, accessNkey: nkey } = yield* petrel
  if (url === "" && creds === undefined && nkey === undefined) return undefined
  const options = yield* brokerOptions
  const address = url === "" ? shownAddress(options.url) : url
  return { ...options, url: address, creds, nkey, isAccess: true }
})

/** Connects to the account of tokens, where a login for it is given. */
const access = Layer.unwrap(
  Effect.gen(function* () {
    const options = yield* accessOptions
    if (options === undefined) return Layer.empty
    const files = "--access-creds or --access-nkey"
    yield* warnOfLogin(options.url, "--access-nats", "NATS_ACCESS_URL", files)
    return accessTo(options)
  })
)

/** Opens a connection for requests over NATS, to the account in which they arrive. */
export const connectionForRequests = Effect.gen(function* () {
  const options = (yield* accessOptions) ?? (yield* brokerOptions)
  return yield* openBroker({ ...options, clientName: "petrel-api" })
})

const withHistory = <E, R>(broker: Layer.Layer<Broker, E, R>) =>
  Layer.merge(
    Facts.layer.pipe(Layer.provideMerge(broker)),
    Layer.effect(
      Monitors,
      Effect.map(petrel, ({ monitors }) => monitors)
    )
  )

/**
 * The broker and its history for a command, for `Effect.provide`. Connects when the effect runs, so
 * that a command validates its input first. What it reads it waits for while a cluster elects
 * leaders.
 */
export const connected = withHistory(
  Layer.effect(Broker, patientBroker).pipe(Layer.provide(broker))
)

/**
 * The same for what runs until it is stopped, which decides by itself what to do while the broker
 * does not answer.
 */
export const connectedToServe = withHistory(broker)

const patientAccess = Layer.effect(
  AccessBroker,
  Effect.flatMap(AccessBroker, (broker) =>
    broker === undefined
      ? Effect.succeed(undefined)
      : Effect.provideService(patientBroker, Broker, broker)
  )
).pipe(Layer.provide(access))

/** `connected` with the account of tokens, which may be another one than the installation has. */
export const connectedWithAccess = Layer.merge(connected, patientAccess)

/** `connectedToServe` with the account of tokens. */
export const connectedWithAccessToServe = Layer.merge(connectedToServe, access)

/** The same for commands on tokens: fails where the installation keeps them in another account. */
export const connectedWithTokens = Layer.effectDiscard(requireAccess).pipe(
  Layer.provideMerge(connectedWithAccess)
)

/** Prints one result: as an object with --json, otherwise as text of one or more lines. */
export const report = Effect.fnUntraced(function* (result: object, text: string) {
  const { json } = yield* petrel
  yield* print(json ? JSON.stringify(result) : text)
})
