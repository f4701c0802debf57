import { execFile } from "node:child_process"
import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { type PluginContext, rolldown } from "rolldown"

const root = join(import.meta.dirname, "..")

/**
 * The files that Node is started with, by name: the command line and each thread. `siblingScript`
 * looks for a thread's file beside the chunk that starts it, so all of them are in one folder.
 */
const entries = {
  petrel: "src/cli/main.ts",
  "writer-thread": "src/projection/writer-thread.ts",
  "query-thread": "src/projection/query-thread.ts",
  "audit-thread": "src/cli/commands/console/audit-thread.ts",
  "audit-job-thread": "src/cli/commands/console/audit-job-thread.ts"
}

/** More than the OpenAPI document has. */
const maxDocumentBytes = 16 * 1024 * 1024

interface BundleOptions {
  /** Further entries: names, and paths from the root of the repository. */
  readonly more?: Readonly<Record<string, string>>
  /** What `petrel --version` says beside the version. */
  readonly revision?: string | undefined
}

/** What the command line loads before it knows which command it is. */
const start = "src/cli/run.ts"

/** Returns a module and all that it imports when it starts. */
const importedBy = (context: PluginContext, path: string): ReadonlySet<string> => {
  const found = new Set([join(root, path)])
  // A set also walks over what is added meanwhile.
  for (const id of found)
    for (const imported of context.getModuleInfo(id)?.importedIds ?? []) found.add(imported)
  return found
}

/**
 * Puts what each command loads in one chunk for each set of threads that load it too: a dozen
 * instead of sixty, which took a sixth of what it costs to start a command. No thread loads more
 * than it needs.
 */
const startChunks = (paths: ReadonlyArray<string>) => {
  let ofStart: ReadonlySet<string> = new Set()
  let ofThreads: ReadonlyArray<ReadonlySet<string>> = []
  return {
    plugin: {
      name: "start-chunks",
      buildEnd(this: PluginContext) {
        ofStart = importedBy(this, start)
        ofThreads = paths.map((path) => importedBy(this, path))
      }
    },
    splitting: {
      groups: [
        {
          debugName: "start",
          name: (id: string) =>
            ofStart.has(id)
              ? `start-${ofThreads.map((thread) => (thread.has(id) ? 1 : 0)).join("")}`
              : null
        }
      ],
      includeDependenciesRecursively: false
    }
  }
}

const generate = async (
  input: Readonly<Record<string, string>>,
  revision: string,
  isSplit: boolean
) => {
  const { petrel: _, ...others } = input
  const { plugin, splitting } = startChunks(Object.values(others))
  const bundle = await rolldown({
    ...(isSplit ? { plugins: [plugin], preserveEntrySignatures: "allow-extension" } : {}),
    input: Object.fromEntries(
      Object.entries(input).map(([name, path]) => [name, join(root, path)])
    ),
    platform: "node",
    transform: { define: { PETREL_REVISION: JSON.stringify(revision) } }
  })
  try {
    const { output } = await bundle.generate({
      // Maps name the sources from where `npm run build` puts them.
      dir: join(root, "dist/cli"),
      format: "esm",
      codeSplitting: isSplit && splitting,
      sourcemap: true,
      // The sources have a repository; without them the maps are a fifth as large.
      sourcemapExcludeSources: true,
      // Nothing is renamed: a trace without maps names functions, too.
      comments: { annotation: false, jsdoc: false, legal: true }
    })
    return output
  } finally {
    await bundle.close()
  }
}

/**
 * Puts the modules of the command line and those of packages together in files without imports from
 * elsewhere. What several entries or commands need is in chunks of its own.
 */
export const bundled = ({ more = {}, revision = "" }: BundleOptions = {}) =>
  generate({ ...entries, ...more }, revision, true)

/**
 * The same of one program, in one file: it starts faster than with a hundred chunks.
 *
 * @param path from the root of the repository.
 */
export const bundledAlone = (name: string, path: string) => generate({ [name]: path }, "", false)

type Pieces = ReadonlyArray<Awaited<ReturnType<typeof generate>>[number]>

/** A trace through the code of packages alone does not lead to a source of Petrel. */
const isOfPackages = (piece: Pieces[number]): boolean =>
  piece.type === "chunk" && piece.moduleIds.every((id) => id.includes("/node_modules/"))

/** Leaves out the maps of chunks that have nothing of Petrel's own. */
const withoutForeignMaps = (pieces: Pieces) => {
  const foreign = new Set(pieces.filter(isOfPackages).map(({ fileName }) => `${fileName}.map`))
  return pieces
    .filter(({ fileName }) => !foreign.has(fileName))
    .map((piece) => {
      const { fileName } = piece
      if (piece.type !== "chunk") return { fileName, content: piece.source }
      const isMapped = !foreign.has(`${fileName}.map`)
      return {
        fileName,
        content: isMapped
          ? piece.code
          : piece.code.replace(/\n\/\/# sourceMappingURL=\S+\s*$/, "\n")
      }
    })
}

/** The command that everything of a package is started with. */
const command = "petrel.js"

/**
 * Writes a bundle into a folder, and beside it what it says is the OpenAPI document: each console
 * needs that when it starts, and to make it takes 0.7 s of CPU.
 */
export const writeBundle = async (pieces: Pieces, folder: string): Promise<void> => {
  await mkdir(folder, { recursive: true })
  for (const { content, fileName } of withoutForeignMaps(pieces))
    await writeFile(join(folder, fileName), content, {
      mode: fileName === command ? 0o755 : 0o644
    })
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(folder, command), "openapi"],
    { maxBuffer: maxDocumentBytes, env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" } }
  )
  // For the program alone: people have it in docs/reference, with line breaks.
  await writeFile(join(folder, "openapi.json"), JSON.stringify(JSON.parse(stdout)))
}
