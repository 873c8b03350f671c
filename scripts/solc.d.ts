/** The parts of solc in use; it has no types of its own. */
declare module 'solc' {
  const solc: {
    /** Compiles standard JSON; `import` returns an imported source, or the reason why it cannot. */
    compile(
      input: string,
      callbacks: { import(path: string): { contents: string } | { error: string } },
    ): string;
  };
  export default solc;
}
