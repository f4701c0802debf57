import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { bundled, writeBundle } from "./bundle.ts"
import { docsPage } from "./docs-page.ts"
import { licensesOf } from "./licenses.ts"
import { manPage } from "./man-page.ts"
import { programExports, writeProgramModules } from "./program-modules.ts"
import { revisionOf } from "./revision.ts"
import { pageFiles } from "./ui.ts"

const root = join(import.meta.dirname, "..")

/** The package of `npm run build`. */
export const dist = join(root, "dist")

/** What the README leads to, and itself. */
const pages: ReadonlyArray<string> = [
  ...["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"],
  ...["docs", "deploy", "examples", "nats.conf"]
]

const textOf = (path: string): Promise<string> => readFile(join(root, path), "utf8")

/** Returns the `package.json` of what is installed: it has no dependencies, as they are bundled. */
const manifest = (sources: string): string => {
  const { description, engines, license, name, version } = JSON.parse(sources)
  const made = {
    ...{ name, version, description, license, engines },
    type: "module",
    bin: { petrel: "cli/petrel.js" },
    // npm links a list, and not a single name.
    man: ["man/petrel.1"],
    // What programs may import, and nothing else.
    exports: {
      ...programExports,
      "./package.json": "./package.json"
    },
    sideEffects: false
  }
  return `${JSON.stringify(made, null, 2)}\n`
}

/**
 * Makes the package in a folder. What the folder had is removed.
 *
 * @param folder of no other use.
 */
export const writePackage = async (folder: string): Promise<void> => {
  const pieces = await bundled({ revision: revisionOf(root) })
  await rm(folder, { recursive: true, force: true })
  await writeBundle(pieces, join(folder, "cli"))
  await writeFile(join(folder, "cli/docs.html"), await docsPage())
  await writeProgramModules(folder)
  await mkdir(join(folder, "ui/assets"), { recursive: true })
  for (const { name, text } of await pageFiles()) await writeFile(join(folder, "ui", name), text)
  const modules = pieces.flatMap((piece) => (piece.type === "chunk" ? piece.moduleIds : []))
  const sources = await textOf("package.json")
  await writeFile(join(folder, "package.json"), manifest(sources))
  await mkdir(join(folder, "man"))
  await writeFile(
    join(folder, "man/petrel.1"),
    manPage(await textOf("docs/reference/commands.md"), JSON.parse(sources).version)
  )
  await writeFile(join(folder, "THIRD-PARTY-LICENSES"), await licensesOf(modules))
  for (const name of pages) await cp(join(root, name), join(folder, name), { recursive: true })
}
