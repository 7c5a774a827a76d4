"""The paper's protocol: consensus ADMM by encrypted exchange among neighbours."""
