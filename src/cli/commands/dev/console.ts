import { randomBytes } from "node:crypto"
import { readFile, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { type BrokerOptions, openBroker } from "../../../broker/connection.ts"
import { operatorNamed } from "../../../operations/caller.ts"
import { JobCounter } from "../../../operations/jobs/job-queue.ts"
import { allTenants, isTokenOf, scopes, tokenIdOf } from "../../../operations/token.ts"
import { createToken } from "../../../operations/tokens/manage-tokens.ts"
import { LiveTokens, readToken } from "../../../operations/tokens/token-store.ts"
import { consoleFiles } from "../../../policy/open-files.ts"
import { DeliveryLog } from "../../../projection/delivery-log.ts"
import { notListening } from "../../flags/listen-flags.ts"
import { startTraces } from "../../flags/metrics-flags.ts"
import { type OpenFiles, serverConnections } from "../../open-files.ts"
import { Refused } from "../../refused.ts"
import { addressOf, makeLoginLink, otherListen, readListen } from "../console/console.ts"
import { defaultKeepMs, defaultMaxBytes } from "../console/projection.ts"

const usable = /^[A-Za-z0-9_-]{16,128}$/

/** Returns the shell expression for the content of a file. */
export const contentOf = (file: string): string =>
  /^[\w./-]+$/.test(file) ? `$(cat ${file})` : `$(cat '${file.replaceAll("'", `'\\''`)}')`

/** The token that the broker requires from its clients, and the file that contains it. */
export interface DevToken {
  readonly token: string
  readonly file: string
  /** Returns the broker's address for a shell that may read the file, without the token itself. */
  readonly shellUrl: (url: string) => string
}

/** Returns an address with the token in place of a user, as clients accept it. */
export const withToken = (url: string, token: string): string => url.replace("//", `//${token}@`)

const isMissing = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && cause.code === "ENOENT"

const readOrMake = async (file: string): Promise<string> => {
  try {
    const token = (await readFile(file, "utf8")).trim()
    if (!usable.test(token)) throw new Error("it must be 16 to 128 letters, digits, - or _")
    if (((await stat(file)).mode & 0o077) !== 0)
      throw new Error("others on this machine may read it")
    return token
  } catch (cause) {
    if (!isMissing(cause)) throw cause
    const token = randomBytes(24).toString("base64url")
    await writeFile(file, `${token}\n`, { mode: 0o600, flag: "wx" })
    return token
  }
}

/**
 * Returns the token of a data directory. Creates it if missing, in a file that only its owner can
 * read. Fails if the file is unusable, or if others can read it.
 */
export const readDevToken = (data: string): Effect.Effect<DevToken, Refused> => {
  const file = join(data, "token")
  return Effect.tryPromise({
    try: () => readOrMake(file),
    catch: (cause) =>
      new Refused({
        message: `the token in ${file} cannot be used (${cause instanceof Error ? cause.message : String(cause)}): remove the file, and a new one is made`
      })
  }).pipe(
    Effect.map((token) => ({
      token,
      file,
      shellUrl: (url) => `"${withToken(url, contentOf(file))}"`
    }))
  )
}

/** The HTTP API of `petrel dev`, and the file of a token for it. */
export interface DevConsole {
  readonly address: string
  /** Logs in once; undefined if that could not be made. */
  readonly login: string | undefined
  readonly tokenFile: string
  /** The token's header for a shell, without the token itself. */
  readonly shellHeader: string
}

/** Its name, for whoever looks at a token or a lease. */
const name = "petrel dev"

/** How long a stop waits for what is in flight, ms: Ctrl-C takes effect within 2 s. */
const stopWithin = 500

const unusable = (file: string, cause: unknown) =>
  new Refused({
    message: `the token of the HTTP API in ${file} cannot be used (${cause instanceof Error ? cause.message : String(cause)}): remove the file, and a new one is made`
  })

/** Returns the token in a file; undefined if there is none. Fails if others can read it. */
const tokenIn = (file: string) =>
  Effect.tryPromise({
    try: async () => {
      const found = await stat(file).catch(() => undefined)
      if (found === undefined) return undefined
      if ((found.mode & 0o077) !== 0) throw new Error("others on this machine may read it")
      return (await readFile(file, "utf8")).trim()
    },
    catch: (cause) => unusable(file, cause)
  })

/** Returns true for a token that the installation knows. */
const isKnown = Effect.fnUntraced(function* (token: string) {
  const id = tokenIdOf(token)
  const record = id === undefined ? undefined : yield* readToken(id)
  return record !== undefined && isTokenOf(record, token)
})

/** Makes a token for all that the API can do, in a file that only its owner can read. */
const ensureToken = Effect.fnUntraced(function* (file: string) {
  const before = yield* tokenIn(file)
  if (before !== undefined && (yield* isKnown(before))) return
  const { token } = yield* createToken(
    { tenant: allTenants, scopes, name },
    operatorNamed(name)
  ).pipe(Effect.provide(LiveTokens.layer))
  yield* Effect.tryPromise({
    try: () => writeFile(file, `${token}\n`, { mode: 0o600 }),
    catch: (cause) => unusable(file, cause)
  })
})

/** What the console of `petrel dev` is started with. */
interface DevConsoleOptions {
  readonly client: BrokerOptions
  readonly data: string
  /** Address and port; port 0 takes a free one. */
  readonly listen: string
  readonly open: OpenFiles
  /** Where spans go; undefined to export none. */
  readonly tracesOtlp: string | undefined
}

/**
 * Serves the HTTP API, keeps the log of deliveries and exports spans beside the broker and the
 * worker, with a token in the data directory.
 */
export const serveDevConsole = Effect.fnUntraced(function* ({
  client,
  data,
  listen,
  open,
  tracesOtlp
}: DevConsoleOptions) {
  const { serveApi } = yield* Effect.promise(() => import("../../../api/server.ts"))
  const { Turns } = yield* Effect.promise(() => import("../../../api/turns.ts"))
  const { serveProjection } = yield* Effect.promise(
    () => import("../../../projection/remote-log.ts")
  )
  const { startNatsService } = yield* Effect.promise(
    () => import("../../../service/nats-service.ts")
  )
  const { auditsInThreads } = yield* Effect.promise(() => import("../console/audit-job.ts"))
  const { runJobs } = yield* Effect.promise(() => import("../../../operations/jobs/job-runner.ts"))
  const tokenFile = join(data, "api-token")
  yield* ensureToken(tokenFile)
  const at = readListen(listen) ?? { host: "", port: 0 }
  const log = yield* serveProjection({
    broker: client,
    data: join(data, "console"),
    // Both are in the data directory: where the broker's store was removed, the log is of no use.
    replacesOther: true,
    keepMs: defaultKeepMs,
    maxBytes: defaultMaxBytes,
    stopWithinMs: stopWithin
  })
  const turns = yield* Turns.make
  const countJobs = yield* runJobs(name, turns.schedulerOfTenant).pipe(auditsInThreads(client))
  const { maxConnections } = yield* Effect.promise(() => import("../../../api/live-connections.ts"))
  const connections = yield* serverConnections(maxConnections, consoleFiles, open)
  const served = serveApi({ ...at, ...connections, stopWithin, turns, hasPages: true })
  const { app, port, refused } = yield* served.pipe(
    Effect.catchTag("ListenRefused", (error) => notListening(error, listen, otherListen)),
    Effect.provideService(DeliveryLog, log),
    Effect.provideService(JobCounter, countJobs)
  )
  yield* startNatsService(app, { refused, broker: yield* openBroker(client) })
  yield* startTraces(tracesOtlp, name)
  const address = addressOf({ host: at.host, publicUrl: undefined, tls: undefined }, port)
  const login = yield* makeLoginLink(name)
  return {
    address,
    login: login === undefined ? undefined : `${address}${login}`,
    tokenFile,
    shellHeader: `"Authorization: Bearer ${contentOf(tokenFile)}"`
  } satisfies DevConsole
})
