/**
 * Returns the commands of a shell script as lists of words: quotes and `\` at the end of a line are
 * resolved, comments, redirections and what follows them are left out. Nothing is expanded.
 */
export const commandsIn = (script: string): ReadonlyArray<ReadonlyArray<string>> => {
  const token =
    /\\\n|[^\S\n]+#[^\n]*|^#[^\n]*|[\n|;&]+|[<>][^\n]*|[^\S\n]+|'[^']*'|"[^"]*"|\\?[^\s'"|;&<>\\]+|\\/gm
  const commands: Array<Array<string>> = []
  let words: Array<string> = []
  let isOpen = false
  for (const [text] of script.matchAll(token)) {
    if (/^[\n|;&]/.test(text)) {
      commands.push(words)
      words = []
      isOpen = false
    } else if (/^(\s|\\\n|#|[<>])/.test(text)) isOpen = false
    else {
      const piece = /^['"]/.test(text) ? text.slice(1, -1) : text
      if (isOpen) words.push(`${words.pop() ?? ""}${piece}`)
      else words.push(piece)
      isOpen = true
    }
  }
  return [...commands, words].filter(({ length }) => length > 0)
}
