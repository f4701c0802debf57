import { execFile } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect, Layer } from "effect"
import { HttpPlatform, HttpRouter, HttpServerResponse } from "effect/http"

/** Where the API's document can be read and tried in a browser. */
export const docsPath = "/docs"

/** In a package: the page, which `npm run build` has made. */
const packaged = fileURLToPath(new URL("./docs.html", import.meta.url))
/** In a clone: what makes it. */
const maker = fileURLToPath(new URL("../../build/docs-page.ts", import.meta.url))

const maxBytes = 16 * 1024 * 1024

/** The viewer is a part of the page: it asks nobody but this server. */
const contentPolicy =
  "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Headers of the page, whatever answers for it. */
export const docsHeaders = { "content-security-policy": contentPolicy }

let made: Promise<string> | undefined

/**
 * Makes the page of a clone once. Whoever asks first may leave meanwhile, and what failed is tried
 * again for the next one.
 */
const madePage = (): Promise<string> => {
  made ??= promisify(execFile)(process.execPath, [maker], { maxBuffer: maxBytes }).then(
    ({ stdout }) => stdout,
    (error: unknown) => {
      made = undefined
      throw error
    }
  )
  return made
}

/**
 * Serves the page. A package's file is read for each answer: the viewer has 2 MB that few people
 * look at, and V8 would keep 7.5 MB of it.
 */
export const docsRoute = Layer.unwrap(
  Effect.gen(function* () {
    const platform = yield* HttpPlatform.HttpPlatform
    const page = existsSync(packaged)
      ? HttpServerResponse.file(packaged, { contentType: "text/html; charset=utf-8" })
      : Effect.map(Effect.promise(madePage), HttpServerResponse.html)
    return HttpRouter.add(
      "GET",
      docsPath,
      Effect.orDie(page.pipe(Effect.provideService(HttpPlatform.HttpPlatform, platform)))
    )
  })
)
