import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"

/** The folder of the package that a module is of. */
const packageFolder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/

/**
 * Returns the licenses of all packages that modules are of, as one text: each asks to be there where
 * its code is.
 *
 * @param modules paths of bundled modules.
 * @throws Error if a package has no license.
 */
export const licensesOf = async (modules: Iterable<string>): Promise<string> => {
  const folders = new Set<string>()
  for (const module of modules) {
    const [folder] = packageFolder.exec(module) ?? []
    if (folder !== undefined) folders.add(folder)
  }
  const texts = await Promise.all(
    [...folders].sort().map(async (folder) => {
      const { license, name, version } = JSON.parse(
        await readFile(join(folder, "package.json"), "utf8")
      )
      const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice)/i.test(file))
      if (files.length === 0) throw new Error(`${name} has no license that could be passed on`)
      const read = await Promise.all(files.map((file) => readFile(join(folder, file), "utf8")))
      return `${name} ${version} (${license})\n\n${read.map((text) => text.trim()).join("\n\n")}\n`
    })
  )
  return texts.join(`\n${"-".repeat(80)}\n\n`)
}
