import { execFile } from "node:child_process"
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { rolldown } from "rolldown"

const root = join(import.meta.dirname, "..")

/** Bundles the client: one module that imports nothing. */
const writeModule = async (folder: string): Promise<void> => {
  const bundle = await rolldown({
    input: { client: join(root, "src/client/client.ts") },
    platform: "neutral"
  })
  try {
    await bundle.write({
      dir: folder,
      format: "esm",
      sourcemap: true,
      comments: { annotation: false, jsdoc: false, legal: true }
    })
  } finally {
    await bundle.close()
  }
}

/** Writes the types of the client, with the compiler's options for browsers. */
const writeTypes = async (folder: string): Promise<void> => {
  const made = await mkdtemp(join(tmpdir(), "petrel-client-types-"))
  try {
    await promisify(execFile)(process.execPath, [
      join(root, "node_modules/typescript/bin/tsc"),
      ...["-p", join(root, "build/client.tsconfig.json"), "--outDir", made]
    ])
    for (const file of await readdir(made, { recursive: true })) {
      if (!file.endsWith(".d.ts")) continue
      const text = await readFile(join(made, file), "utf8")
      // Programs may have a compiler that takes no names that end in .ts.
      const portable = text.replaceAll(/(from "\.[^"]*)\.ts"/g, '$1.js"')
      await mkdir(dirname(join(folder, file)), { recursive: true })
      await writeFile(join(folder, file), portable)
    }
  } finally {
    await rm(made, { recursive: true, force: true })
  }
}

/** Writes `petrel/client`: what programs import, and its types. */
export const writeClient = async (folder: string): Promise<void> => {
  await mkdir(folder, { recursive: true })
  await writeModule(folder)
  await writeTypes(folder)
}
