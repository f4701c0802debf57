import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import { basename } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { brotliCompress } from "node:zlib"
import { Effect, Layer, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { problemResponse } from "./problems.ts"

/** Where the pages are. */
export const pagesPath = "/ui/"

const typesByEnd: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8"
}

/** A file as it is sent. */
interface Sent {
  readonly type: string
  readonly plain: Uint8Array
  readonly packed: Uint8Array
}

/** In a package: what `npm run build` has made of `ui/`. */
const packaged = fileURLToPath(new URL("../ui", import.meta.url))
/** In a clone: what makes it. */
const maker = fileURLToPath(new URL("../../build/ui.ts", import.meta.url))

const Made = Schema.fromJsonString(
  Schema.Array(Schema.Struct({ name: Schema.String, text: Schema.String }))
)

const maxMadeBytes = 16 * 1024 * 1024

/** Reads the files of the pages, or makes them in a process of its own. */
const readFiles = async (): Promise<ReadonlyArray<{ name: string; text: string }>> => {
  if (!existsSync(packaged)) {
    const made = await promisify(execFile)(process.execPath, [maker], { maxBuffer: maxMadeBytes })
    return Schema.decodeUnknownSync(Made)(made.stdout)
  }
  const names = await readdir(packaged, { recursive: true, withFileTypes: true })
  return Promise.all(
    names
      .filter((entry) => entry.isFile())
      .map(async ({ name, parentPath }) => ({
        name: basename(parentPath) === "assets" ? `assets/${name}` : name,
        text: await readFile(`${parentPath}/${name}`, "utf8")
      }))
  )
}

const compress = promisify(brotliCompress)

const sent = async (name: string, text: string): Promise<Sent> => {
  const plain = Buffer.from(text)
  return {
    type: typesByEnd[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream",
    plain,
    packed: await compress(plain)
  }
}

const makeFiles = async (): Promise<ReadonlyMap<string, Sent>> => {
  const all = await readFiles()
  return new Map(
    await Promise.all(all.map(async ({ name, text }) => [name, await sent(name, text)] as const))
  )
}

let made: Promise<ReadonlyMap<string, Sent>> | undefined

/**
 * Returns the files, which are made when they are first asked for: most consoles of tests are never
 * looked at. The consoles of a process share them. What failed is tried again by the next console.
 */
const filesOfProcess = (): Promise<ReadonlyMap<string, Sent>> => {
  made ??= makeFiles().catch((error: unknown) => {
    made = undefined
    throw error
  })
  return made
}

/** The pages run what this server sends and ask this server, and nobody frames them. */
const contentPolicy = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:"],
  ...["connect-src 'self'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"]
].join("; ")

const shellHeaders = {
  "content-security-policy": contentPolicy,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()"
}

/** The name of an asset has the hash of its contents. */
const assetHeaders = {
  "cache-control": "public, max-age=31536000, immutable",
  "cross-origin-resource-policy": "same-origin"
}

const answerWith = (
  { packed, plain, type }: Sent,
  acceptEncoding = "",
  headers: Readonly<Record<string, string>>
) => {
  const isPacked = /\bbr\b/.test(acceptEncoding)
  return HttpServerResponse.uint8Array(isPacked ? packed : plain, {
    contentType: type,
    headers: {
      ...headers,
      vary: "accept-encoding",
      ...(isPacked ? { "content-encoding": "br" } : {})
    }
  })
}

const missing = problemResponse({
  status: 404,
  name: "not-found",
  title: "It does not exist",
  detail:
    "there is no such file: load the page again, because the console is of another version now"
})

const unmade = problemResponse({
  status: 503,
  name: "unavailable",
  title: "It cannot be answered now",
  detail: "the pages could not be made: the log of the console says why"
})

/** Serves the console's pages: their files, and the one document for all addresses of pages. */
export const pageRoutes = Layer.unwrap(
  Effect.gen(function* () {
    const files = yield* Effect.cached(Effect.tryPromise(filesOfProcess))
    const answer = Effect.gen(function* () {
      const { headers, url } = yield* HttpServerRequest.HttpServerRequest
      const found = yield* files
      const name = url.slice(pagesPath.length).replace(/[?#].*$/s, "")
      const encodings = headers["accept-encoding"]
      if (name.startsWith("assets/")) {
        const asset = found.get(name)
        return asset === undefined ? missing : answerWith(asset, encodings, assetHeaders)
      }
      const shell = found.get("index.html")
      return shell === undefined ? unmade : answerWith(shell, encodings, shellHeaders)
    }).pipe(
      Effect.catch((cause) =>
        Effect.as(Effect.logError("the pages could not be made", cause), unmade)
      )
    )
    const toPages = HttpServerResponse.empty({ status: 302, headers: { location: pagesPath } })
    return Layer.mergeAll(
      HttpRouter.add("GET", "/", Effect.succeed(toPages)),
      HttpRouter.add("GET", "/ui/*", answer)
    )
  })
)
