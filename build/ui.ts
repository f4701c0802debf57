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

/** Lines of operations that no page asks for. */
const unused =
  /^ {2}"(events\.\w+|deliveries\.totals|log\.projection|deadLetters\.(get|discard)|system\.workers|tokens\.get|portalLinks\.list|health\.health)": .*\n/gm

/**
 * Leaves out of the client what no page does. The publishing of events and the waiting for a job's end,
 * 2,080 bytes in gzip: `petrel` of `ui/session.ts` has no method for them. What to do instead over NATS,
 * and the reading of what only programs read.
 */
const withoutUnused = {
  name: "without-unused",
  load: async (id: string): Promise<string | null> => {
    if (id === join(root, "src/client/publishing.ts"))
      return "export const publishOne = undefined, publishBytes = undefined, publishEvents = undefined"
    if (id === join(root, "src/client/jobs.ts"))
      return "export const finishJob = undefined, JobFailed = undefined"
    if (id !== join(root, "src/client/generated/operations.ts")) return null
    const text = await readFile(id, "utf8")
    return text.replaceAll(/, insteadOverNats: "[^"]*"/g, "").replaceAll(unused, "")
  }
}

const scriptOf = async (): Promise<string> => {
  const bundle = await rolldown({
    input: join(root, "ui/main.tsx"),
    platform: "browser",
    plugins: [withoutUnused],
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
