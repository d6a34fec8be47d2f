/** Libraries that are large and seldom wanted: who wants the step that stands on one installs it. */
export async function optional<T>(load: () => Promise<T>, name: string): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    throw new Error(`the package ${name} is not installed (npm install ${name})`, { cause })
  }
}
