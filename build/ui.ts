/*
 * The console's pages as a browser loads them. `node build/ui.ts` writes them to standard output as
 * JSON: a console that runs from a clone gets them so, and holds no bundler in its memory.
 */
import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { rolldown } from "rolldown"

const root = join(import.meta.dirname, "..")

/** A file that a browser loads, by its path below `/ui/`. */
interface PageFile {
  readonly name: string
  readonly text: string
}

const named = (base: string, extension: string, text: string): PageFile => {
  const hash = createHash("sha256").update(text).digest("base64url").slice(0, 10)
  return { name: `assets/${base}-${hash}.${extension}`, text }
}

/**
 * Leaves the publishing of events out of the client, 1,748 bytes in gzip: no page publishes, and
 * `petrel` of `ui/session.ts` has no method that does.
 */
const withoutPublishing = {
  name: "without-publishing",
  load: (id: string): string | null =>
    id === join(root, "src/client/publishing.ts")
      ? "export const publishOne = undefined, publishBytes = undefined, publishEvents = undefined"
      : null
}

const scriptOf = async (): Promise<string> => {
  const bundle = await rolldown({
    input: join(root, "ui/main.tsx"),
    platform: "browser",
    plugins: [withoutPublishing],
    transform: {
      jsx: { runtime: "automatic", importSource: "preact", pure: false },
      define: { "process.env.NODE_ENV": '"production"' }
    }
  })
  try {
    const { output } = await bundle.generate({ format: "esm", minify: true, codeSplitting: false })
    return output[0].code
  } finally {
    await bundle.close()
  }
}

/** Returns the files of the pages: a document, which names a script and a style by their contents. */
export const pageFiles = async (): Promise<ReadonlyArray<PageFile>> => {
  const [script, style] = [
    named("petrel", "js", await scriptOf()),
    named("petrel", "css", await readFile(join(root, "ui/look.css"), "utf8"))
  ]
  const text = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Petrel</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/ui/${style.name}">
<div id="app"></div>
<script type="module" src="/ui/${script.name}"></script>
</html>
`
  return [{ name: "index.html", text }, script, style]
}

if (import.meta.main) process.stdout.write(JSON.stringify(await pageFiles()))
