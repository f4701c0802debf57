import { randomUUID } from "node:crypto"
import { constants } from "node:fs"
import { access, chmod, copyFile, mkdir, mkdtemp, rename, rm } from "node:fs/promises"
import { homedir, tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { Effect, Result, Schema, SemVer } from "effect"
import { debianPackage } from "./debian.ts"
import { releaseArchive } from "./release.ts"
import type { ReportProgress, Source } from "./source.ts"
import { ObtainFailed, run } from "./source.ts"

/** The oldest nats-server with message schedules and per-message TTL. */
export const oldestUsable = "2.12.0"

const remedy =
  "install nats-server 2.12 or newer (https://nats.io/download, or `brew install nats-server`) and set NATS_SERVER to its path"

/** There is no usable nats-server, and the message says what to do about it. */
export class BrokerBinaryError extends Schema.TaggedError<BrokerBinaryError>()(
  "BrokerBinaryError",
  { message: Schema.String }
) {}

/** A nats-server binary that exists and is new enough. */
export interface NatsServerBinary {
  readonly path: string
  readonly version: string
  /** "NATS_SERVER", "PATH", "cache", or the name of the source that it was just fetched from. */
  readonly from: string
}

export interface FindNatsServerOptions {
  /** Receives progress lines. (Default: they go to stderr) */
  readonly onProgress?: ReportProgress
  /** (Default: process.env) */
  readonly env?: NodeJS.ProcessEnv
  /**
   * Sources to try in order if the machine has no usable binary. (Default: `defaultSources`)
   */
  readonly sources?: ReadonlyArray<Source>
}

/**
 * The project's release, whose checksum is pinned here, and only where that cannot be had Debian's
 * package. Both are unpacked into the cache: nothing is installed on the machine.
 */
export const defaultSources = (): ReadonlyArray<Source> => [releaseArchive(), debianPackage()]

const versionTimeoutMs = 10_000

const versionOf = (path: string): Effect.Effect<SemVer.SemVer, ObtainFailed> =>
  run(path, ["--version"], { timeoutMs: versionTimeoutMs }).pipe(
    Effect.flatMap((said) => {
      const version = SemVer.parse(/nats-server: v(\S+)/.exec(said)?.[1] ?? "")
      return Result.isSuccess(version)
        ? Effect.succeed(version.success)
        : Effect.fail(new ObtainFailed({ message: `${path} --version names no version` }))
    })
  )

const newEnough = SemVer.isGreaterThanOrEqualTo(SemVer.parseUnsafe(oldestUsable))

/** Returns the binary at `path` if it is usable; the failure is a clause that says why not. */
const usable = Effect.fnUntraced(function* (path: string, from: string) {
  const version = yield* versionOf(path)
  if (!newEnough(version))
    return yield* new ObtainFailed({
      message: `${path} is nats-server ${SemVer.format(version)}, older than 2.12`
    })
  return { path, version: SemVer.format(version), from }
})

const isExecutable = (path: string) =>
  Effect.promise(() =>
    access(path, constants.X_OK).then(
      () => true,
      () => false
    )
  )

const cacheDirectory = (env: NodeJS.ProcessEnv): string => {
  if (env.XDG_CACHE_HOME) return join(env.XDG_CACHE_HOME, "petrel")
  const home = env.HOME || homedir()
  return join(home, process.platform === "darwin" ? "Library/Caches" : ".cache", "petrel")
}

const attempt = <A>(what: () => Promise<A>) =>
  Effect.tryPromise({
    try: what,
    catch: (cause) =>
      new ObtainFailed({ message: cause instanceof Error ? cause.message : String(cause) })
  })

/**
 * Fetches from one source into the cache. The file under the final name is always complete and has
 * been run once: other processes may fetch at the same time, and the last rename wins.
 */
const obtainFrom = (source: Source, cache: string, progress: ReportProgress) =>
  Effect.acquireUseRelease(
    attempt(() => mkdtemp(join(tmpdir(), "petrel-nats-server-"))),
    Effect.fnUntraced(function* (directory) {
      const fetched = yield* source.obtain(directory, progress)
      if (fetched === undefined) return undefined
      const final = join(cache, "nats-server")
      const staged = join(cache, `.nats-server-${randomUUID()}`)
      yield* attempt(async () => {
        await mkdir(cache, { recursive: true })
        await copyFile(fetched, staged)
        await chmod(staged, 0o755)
      })
      const binary = yield* usable(staged, source.name).pipe(
        Effect.tap(attempt(() => rename(staged, final))),
        Effect.onError(() => Effect.promise(() => rm(staged, { force: true })))
      )
      return { ...binary, path: final }
    }),
    (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )

/**
 * Finds a nats-server of at least 2.12. The order is: the one that NATS_SERVER names, the first
 * usable one in PATH, the one in the cache (`petrel` in XDG_CACHE_HOME or the platform's cache
 * directory), one that is fetched now and cached.
 *
 * Fails if NATS_SERVER names an unusable binary. Other unusable binaries are skipped with a
 * progress line.
 */
export const findNatsServer = Effect.fnUntraced(function* (
  options: FindNatsServerOptions = {}
): Effect.fn.Return<NatsServerBinary, BrokerBinaryError> {
  const env = options.env ?? process.env
  const progress = options.onProgress ?? ((line: string) => process.stderr.write(`${line}\n`))

  if (env.NATS_SERVER)
    return yield* usable(env.NATS_SERVER, "NATS_SERVER").pipe(
      Effect.mapError(
        ({ message }) =>
          new BrokerBinaryError({ message: `NATS_SERVER cannot be used (${message}): ${remedy}` })
      )
    )

  const cache = cacheDirectory(env)
  const places = (env.PATH ?? "")
    .split(delimiter)
    .filter((directory) => directory !== "")
    .map((directory) => ({ path: join(directory, "nats-server"), from: "PATH" }))
  for (const { path, from } of [...places, { path: join(cache, "nats-server"), from: "cache" }]) {
    if (!(yield* isExecutable(path))) continue
    const found = yield* Effect.result(usable(path, from))
    if (Result.isSuccess(found)) return found.success
    progress(`passed over: ${found.failure.message}`)
  }

  const sources = options.sources ?? defaultSources()
  const reasons: Array<string> = []
  for (const source of sources) {
    const found = yield* Effect.result(obtainFrom(source, cache, progress))
    if (Result.isFailure(found)) {
      reasons.push(`${source.name}: ${found.failure.message}`)
      progress(`not available there: ${found.failure.message}`)
    } else if (found.success !== undefined) {
      progress(`nats-server ${found.success.version} is kept in ${cache}`)
      return found.success
    }
  }
  const why = reasons.length === 0 ? "" : `, and none could be obtained (${reasons.join("; ")})`
  return yield* new BrokerBinaryError({
    message: `there is no nats-server 2.12 or newer on this machine${why}: ${remedy}`
  })
})
