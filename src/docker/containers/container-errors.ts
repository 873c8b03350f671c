/** Base of what Docker, or our rules about it, can refuse. */
export class ContainerError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Docker cannot be reached, or did not answer in time. Whether the call took effect is unknown. */
export class DockerUnavailableError extends ContainerError {}

/** A container, network or volume has our name and not our labels. It is never touched. */
export class ForeignContainerError extends ContainerError {
  constructor(kind: 'container' | 'network' | 'volume', name: string) {
    super(`The ${kind} ${name} exists and is not ours; remove or rename it`);
  }
}

/** The host port is in use by somebody else: take the next one. */
export class PortTakenError extends ContainerError {
  constructor(port: number, options?: ErrorOptions) {
    super(`Port ${port} is in use on the host`, options);
  }
}

/** The subnet overlaps one that is in use: take the next one. */
export class SubnetTakenError extends ContainerError {
  constructor(subnet: string, options?: ErrorOptions) {
    super(`Subnet ${subnet} overlaps a network in use`, options);
  }
}

/** The image is neither in Docker nor to be had from its registry. */
export class ImageUnavailableError extends ContainerError {
  constructor(image: string, options?: ErrorOptions) {
    super(`Image ${image} is not on the engine and cannot be pulled`, options);
  }
}

/** There is no container for this agent. */
export class ContainerMissingError extends ContainerError {
  constructor(agentId: string) {
    super(`Agent ${agentId} has no container`);
  }
}

/** The volume with the agent's memory is not there, and nothing but its making may make it. */
export class MemoryMissingError extends ContainerError {
  constructor(volume: string) {
    super(`The agent cannot run, because its memory is missing: there is no volume ${volume}`);
  }
}

/** A volume that is to be made is there, and something else has made it. It is never touched. */
export class VolumeTakenError extends ContainerError {
  constructor(volume: string) {
    super(`The volume ${volume} exists and was made by something else; it stays as it is`);
  }
}

/** Less is free of the host's disk than always has to be. */
export class DiskLowError extends ContainerError {
  constructor(free: number, floor: number) {
    super(`Only ${mib(free)} MiB of the host's disk are free, of which ${mib(floor)} have to stay`);
  }
}

/** The volume holds more than may be copied. */
export class VolumeTooLargeError extends ContainerError {
  constructor(limit: number) {
    super(`The memory is larger than the ${mib(limit)} MiB that may be copied`);
  }
}

const mib = (bytes: number): number => Math.floor(bytes / 1024 ** 2);

/** The volume that is to be copied is not there. */
export class VolumeMissingError extends ContainerError {
  constructor(volume: string) {
    super(`There is no volume ${volume}`);
  }
}

/**
 * Docker answered with an error that has no meaning of its own here. Failures are told to the owners of
 * agents, and Docker names paths and addresses of its host: what it said is the cause's message alone,
 * for operators.
 */
export class DockerRefusedError extends ContainerError {
  constructor(
    readonly statusCode: number,
    /** What Docker said. */
    readonly said: string,
    cause: Error = new Error(said),
  ) {
    super('The container engine refused this step (ENGINE_REFUSED)', { cause });
  }
}

/** A log cursor that was not made by us. */
export class InvalidCursorError extends ContainerError {
  constructor() {
    super('The log cursor is not one that was given out');
  }
}
