import { execFile } from "node:child_process"
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { rolldown } from "rolldown"

const root = join(import.meta.dirname, "..")

/** What programs import as `petrel/<name>`: a module of its own, and its types. */
interface ProgramModule {
  readonly name: string
  /** The source, below `src`. */
  readonly entry: string
  /** The types of the entry, below the module's folder. */
  readonly types: string
  /** What it runs on: `neutral` is browsers, too. */
  readonly platform: "neutral" | "node"
}

/** All of them. `build/<name>.tsconfig.json` makes the types of each. */
const programModules: ReadonlyArray<ProgramModule> = [
  { name: "client", entry: "client/client.ts", types: "client.d.ts", platform: "neutral" },
  { name: "outbox", entry: "outbox/outbox.ts", types: "outbox/outbox.d.ts", platform: "neutral" },
  { name: "receiver", entry: "receiver/index.ts", types: "receiver/index.d.ts", platform: "node" },
  {
    name: "providers",
    entry: "providers/providers.ts",
    types: "providers/providers.d.ts",
    platform: "node"
  }
]

/** What of the package programs may import, for its `package.json`. */
export const programExports = Object.fromEntries(
  programModules.map(({ name, types }) => [
    `./${name}`,
    { types: `./${name}/${types}`, default: `./${name}/${name}.js` }
  ])
)

/** Bundles a module, with all that it imports. */
const writeCode = async (
  { entry, name, platform }: ProgramModule,
  folder: string
): Promise<void> => {
  const bundle = await rolldown({ input: { [name]: join(root, "src", entry) }, platform })
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

/** Writes the types of a module, with the compiler's options of where it runs. */
const writeTypes = async ({ name }: ProgramModule, folder: string): Promise<void> => {
  const made = await mkdtemp(join(tmpdir(), `petrel-${name}-types-`))
  try {
    await promisify(execFile)(process.execPath, [
      join(root, "node_modules/typescript/bin/tsc"),
      ...["-p", join(root, `build/${name}.tsconfig.json`), "--outDir", made]
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

/** Writes what programs import, each module in a folder of its own below this one. */
export const writeProgramModules = async (below: string): Promise<void> => {
  for (const one of programModules) {
    const folder = join(below, one.name)
    await mkdir(folder, { recursive: true })
    await writeCode(one, folder)
    await writeTypes(one, folder)
  }
}
