/** Of solc, which has no types: what is used here. */
declare module 'solc' {
  const solc: {
    /** Standard JSON in and out; `import` answers what a source imports, or why it cannot. */
    compile(
      input: string,
      callbacks: { import(path: string): { contents: string } | { error: string } },
    ): string;
  };
  export default solc;
}
