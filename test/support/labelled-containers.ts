import type { AgentContainerSpec } from '../../src/containers/agent-container.js';
import { DockerContainers } from '../../src/containers/docker-containers.js';
import type { DockerContainersOptions } from '../../src/containers/docker-containers.js';

/** The product's adapter, which also puts the test run's label on all that it makes. */
export class LabelledContainers extends DockerContainers {
  constructor(
    options: DockerContainersOptions,
    private readonly labels: Readonly<Record<string, string>>,
  ) {
    super(options);
  }

  override ensureNetwork(spec: AgentContainerSpec) {
    return super.ensureNetwork(this.labelled(spec));
  }

  override ensureVolume(spec: AgentContainerSpec) {
    return super.ensureVolume(this.labelled(spec));
  }

  override ensureContainer(spec: AgentContainerSpec) {
    return super.ensureContainer(this.labelled(spec));
  }

  private labelled(spec: AgentContainerSpec): AgentContainerSpec {
    return { ...spec, labels: { ...spec.labels, ...this.labels } };
  }
}
