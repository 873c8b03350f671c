/** A barrier that blocks every caller until it is opened. */
export class Gate {
  open: () => void = () => undefined;
  readonly opened = new Promise<void>((resolve) => {
    this.open = resolve;
  });
  readonly pass = (): Promise<void> => this.opened;
}
