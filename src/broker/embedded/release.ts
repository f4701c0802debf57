import { createHash } from "node:crypto"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import type { ReportProgress, Source } from "./source.ts"
import { ObtainFailed, run } from "./source.ts"

const connectTimeoutMs = 5_000
const stallTimeoutMs = 10_000
const extractTimeoutMs = 30_000

/** A release: where it is fetched from, and the checksums of its archives. */
interface Release {
  readonly version: string
  readonly baseUrl: string
  /** SHA-256 in hex, by NATS's name of the platform. */
  readonly sha256: Readonly<Record<string, string>>
}

/**
 * The release that is fetched, with pinned checksums. The Linux checksums are those with which the
 * NATS project builds its own container images of this release. The macOS checksums are from a
 * third party, which agrees with the project on the Linux ones; if one were wrong, the download
 * would be rejected.
 */
const pinnedRelease: Release = {
  version: "2.15.0",
  baseUrl: "https://github.com/nats-io/nats-server/releases/download",
  sha256: {
    "linux-amd64": "5d2c51caca950333aba84911df7d377f826f3a59ec36061c6539105084f65c92",
    "linux-arm64": "cdc208f5a3f42963a52b6ab06ef65626bb870315dc936e26ba571780c6351112",
    "linux-arm7": "ec5f4689d017e07cfa18442e10da051c0f3f9dd2e7f4dc7cdb55a11f1303c952",
    "linux-s390x": "ac50bf4adc8fa6db575ed9293417b6fbec746e71cc9d360aea5cd447e4207bfc",
    "linux-ppc64le": "a402bf73f91f674735cc85aa0e7d06d5dfa3044b98cda6ea9937cfee4e05a266",
    "darwin-amd64": "5bd8b59ca5bf93fab3da2c5843cf564cd6e2e291e22ae3b861746e7ebe259b95",
    "darwin-arm64": "e1c4e22d70bd44abfa0bcb3c16f7cf0c66f648c2e728c58924e8a1ce88913cc8"
  }
}

const architectures: Readonly<Record<string, string>> = {
  x64: "amd64",
  arm: "arm7",
  ppc64: "ppc64le"
}

/** Returns NATS's name of a platform from Node's `platform` and `arch`. */
export const platformName = (platform: string, arch: string): string =>
  `${platform}-${architectures[arch] ?? arch}`

const rootCause = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : rootCause(error.cause)
}

const download = async (
  url: string,
  progress: ReportProgress,
  signal: AbortSignal
): Promise<Buffer> => {
  // Imported only when needed: the module is large, and most runs download nothing.
  const { EnvHttpProxyAgent, fetch } = await import("undici")
  const dispatcher = new EnvHttpProxyAgent({
    connect: { timeout: connectTimeoutMs },
    headersTimeout: stallTimeoutMs,
    bodyTimeout: stallTimeoutMs
  })
  try {
    const response = await fetch(url, { dispatcher, signal })
    if (response.status !== 200 || response.body === null)
      throw new Error(`status ${response.status}`)
    const total = Number(response.headers.get("content-length") ?? Number.NaN)
    const chunks: Array<Uint8Array> = []
    let bytes = 0
    let quarters = 0
    for await (const chunk of response.body) {
      chunks.push(chunk)
      bytes += chunk.byteLength
      const now = Math.floor((bytes / total) * 4)
      if (now > quarters) {
        quarters = now
        progress(`  ${now * 25}% of ${(total / 1e6).toFixed(1)} MB`)
      }
    }
    return Buffer.concat(chunks)
  } finally {
    await dispatcher.destroy()
  }
}

/**
 * The NATS project's release archive for this platform, rejected if its SHA-256 is not the pinned
 * one. Obeys HTTPS_PROXY and NO_PROXY. Yields nothing for platforms without a pinned checksum.
 */
export const releaseArchive = (
  release: Release = pinnedRelease,
  platform = platformName(process.platform, process.arch)
): Source => ({
  name: "the NATS project's release",
  obtain: Effect.fnUntraced(function* (directory, progress) {
    const expected = release.sha256[platform]
    if (expected === undefined) return undefined
    const stem = `nats-server-v${release.version}-${platform}`
    const url = `${release.baseUrl}/v${release.version}/${stem}.tar.gz`
    progress(`fetching ${url}`)
    const archive = yield* Effect.tryPromise({
      try: (signal) => download(url, progress, signal),
      catch: (error) => new ObtainFailed({ message: rootCause(error) })
    })
    const actual = createHash("sha256").update(archive).digest("hex")
    if (actual !== expected)
      return yield* new ObtainFailed({
        message: `${stem}.tar.gz has the SHA-256 ${actual} instead of ${expected}`
      })
    yield* Effect.tryPromise({
      try: () => writeFile(join(directory, "archive.tar.gz"), archive),
      catch: (cause) => new ObtainFailed({ message: String(cause) })
    })
    yield* run("tar", ["-xzf", "archive.tar.gz"], { timeoutMs: extractTimeoutMs, cwd: directory })
    return join(directory, stem, "nats-server")
  })
})
